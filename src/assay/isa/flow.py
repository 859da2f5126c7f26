"""Splits a SASS function into basic blocks, with their successors and their loop depth."""

from dataclasses import dataclass

from assay.isa.sass import Function, Instruction

_ALONE = ("CALL", "RET", "EXIT", "BRX", "BRXU", "JMX", "JMXU", "BRA", "JMP", "BSYNC", "KILL")
"""Opcodes that end a block."""


@dataclass(frozen=True)
class Block:
    number: int
    instructions: tuple[Instruction, ...]
    follows: tuple[int, ...]
    """Numbers of the blocks that may run next."""
    loop_depth: int = 0

    @property
    def start(self) -> int:
        return self.instructions[0].address

    @property
    def end(self) -> int:
        """Address of its last instruction."""
        return self.instructions[-1].address


def blocks(function: Function) -> list[Block]:
    """Return the basic blocks in order of address; every instruction is in exactly one."""
    if not function.instructions:
        return []
    starts = _starts(function)
    pieces: list[list[Instruction]] = []
    for instruction in function.instructions:
        if instruction.address in starts:
            pieces.append([])
        pieces[-1].append(instruction)
    number = {piece[0].address: i for i, piece in enumerate(pieces)}
    follows = [tuple(dict.fromkeys(number[a] for a in function.follows(piece[-1]) if a in number)) for piece in pieces]
    roots = [0, *(number[a] for a in _called(function) if a in number)]
    depth = _depths(follows, roots)
    return [Block(i, tuple(piece), follows[i], depth[i]) for i, piece in enumerate(pieces)]


def _starts(function: Function) -> set[int]:
    starts = {function.instructions[0].address, *_called(function)}
    for position, instruction in enumerate(function.instructions):
        targets = function.goes_to(instruction)
        starts.update(targets)
        ends = instruction.opcode in _ALONE or targets
        if ends and position + 1 < len(function.instructions):
            starts.add(function.instructions[position + 1].address)
    return starts


def _called(function: Function) -> list[int]:
    """Return the addresses at which device functions in the same section begin."""
    addresses = [
        function.labels[t]
        for i in function.instructions
        if i.opcode == "CALL"
        for t in i.targets
        if t in function.labels
    ]
    return list(dict.fromkeys(a for a in addresses if a in function.index))


def _depths(follows: list[tuple[int, ...]], roots: list[int]) -> list[int]:
    """Return how many loops contain each block. A loop is a header and every block between it and a branch back to
    it."""
    depth = [0] * len(follows)
    before: list[list[int]] = [[] for _ in follows]
    for block, nexts in enumerate(follows):
        for other in nexts:
            before[other].append(block)
    for root in roots:
        order = _postorder(follows, root)
        above = _dominators(order, before)
        bodies: dict[int, set[int]] = {}
        for block in order:
            for header in follows[block]:
                if header in above and _dominates(header, block, above, root):
                    bodies.setdefault(header, {header}).update(_body(header, block, before, above))
        for body in bodies.values():
            for block in body:
                depth[block] += 1
    return depth


def _postorder(follows: list[tuple[int, ...]], root: int) -> list[int]:
    order, seen, waiting = [], {root}, [(root, iter(follows[root]))]
    while waiting:
        block, rest = waiting[-1]
        for other in rest:
            if other not in seen:
                seen.add(other)
                waiting.append((other, iter(follows[other])))
                break
        else:
            order.append(block)
            waiting.pop()
    return order


def _dominators(order: list[int], before: list[list[int]]) -> dict[int, int]:
    """Return each reachable block's immediate dominator (Cooper, Harvey, Kennedy)."""
    rank = {block: i for i, block in enumerate(order)}
    root = order[-1]
    above = {root: root}

    def meet(a: int, b: int) -> int:
        while a != b:
            while rank[a] < rank[b]:
                a = above[a]
            while rank[b] < rank[a]:
                b = above[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [p for p in before[block] if p in above]
            new = known[0]
            for other in known[1:]:
                new = meet(new, other)
            if above.get(block) != new:
                above[block] = new
                changed = True
    return above


def _dominates(header: int, block: int, above: dict[int, int], root: int) -> bool:
    while block != header:
        if block == root:
            return False
        block = above[block]
    return True


def _body(header: int, back: int, before: list[list[int]], reachable: dict[int, int]) -> set[int]:
    body, waiting = {back}, [back]
    while waiting:
        block = waiting.pop()
        if block == header:
            continue
        for other in before[block]:
            if other not in body and other in reachable:
                body.add(other)
                waiting.append(other)
    return body
