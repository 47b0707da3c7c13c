"""The queue record as a Redis hash. Values stay within 64 bytes, so that Redis keeps the record as a listpack.

r rev · u day · o owner · i message in flight · io its owner · a last ACK · f over quota · s sender id ·
k, k1 … recipient keys · d DH secret · y sender key · m mode · l link id · t status ·
n, nk, nd notifier id, key, DH secret · no its owner · rs, ns services
"""

from weir.crypto.keys import pack_key, packed_spki
from weir.router.store.records import EntityStatus, NewNotifier, NewQueue, QueueRecord
from weir.wire.errors import BlockingInfo, BlockingReason
from weir.wire.smp.commands import QueueMode

_OFF = b"o"
_MODES = {mode.value: mode for mode in QueueMode}


def record_fields(new: NewQueue, token: bytes | None) -> list[bytes]:
    """Field, value, … of a new queue. Fields that SEND and ACK read come first: Redis searches a listpack linearly."""
    fields = [b"r", b"1", b"u", b"%d" % new.day]
    if token is not None and new.service is None:
        fields += [b"o", token]
    fields += [b"s", new.snd_id, b"k", pack_key(new.rcv_key), b"d", new.dh_secret]
    if new.mode is not None:
        fields += [b"m", new.mode.value]
    if new.link is not None:
        fields += [b"l", new.link.link_id]
    if new.notifier is not None:
        fields += notifier_fields(new.notifier)
    if new.service is not None:
        fields += [b"rs", new.service]
    return fields


def notifier_fields(ntf: NewNotifier) -> list[bytes]:
    return [b"n", ntf.ntf_id, b"nk", pack_key(ntf.key), b"nd", ntf.dh_secret]


def key_fields(rcv_keys: tuple[bytes, ...]) -> list[bytes]:
    fields = [b"k", pack_key(rcv_keys[0])]
    for n, key in enumerate(rcv_keys[1:], 1):
        fields += [b"k%d" % n, pack_key(key)]
    return fields


def new_record(new: NewQueue, partition: int) -> QueueRecord:
    ntf = new.notifier
    return QueueRecord(
        rcv_id=new.rcv_id,
        snd_id=new.snd_id,
        partition=partition,
        rev=1,
        rcv_keys=(new.rcv_key,),
        dh_secret=new.dh_secret,
        snd_key=None,
        mode=new.mode,
        link_id=new.link.link_id if new.link else None,
        ntf_id=ntf.ntf_id if ntf else None,
        ntf_key=ntf.key if ntf else None,
        ntf_dh_secret=ntf.dh_secret if ntf else None,
        status=EntityStatus.ACTIVE,
        day=new.day,
        rcv_service=new.service,
        ntf_service=None,
    )


def parse_record(rcv_id: bytes, partition: int, flat: list[bytes]) -> QueueRecord:
    """A record from field, value, … as HGETALL answers."""
    pairs = iter(flat)
    fields = dict(zip(pairs, pairs, strict=True))
    get = fields.get
    rcv_keys: tuple[bytes, ...] = (packed_spki(fields[b"k"]),)
    while (more := get(b"k%d" % len(rcv_keys))) is not None:
        rcv_keys += (packed_spki(more),)
    snd_key, ntf_key, mode, status = get(b"y"), get(b"nk"), get(b"m"), get(b"t")
    return QueueRecord(
        rcv_id,
        fields[b"s"],
        partition,
        int(fields[b"r"]),
        rcv_keys,
        fields[b"d"],
        packed_spki(snd_key) if snd_key else None,
        _MODES[mode] if mode else None,
        get(b"l"),
        get(b"n"),
        packed_spki(ntf_key) if ntf_key else None,
        get(b"nd"),
        unpack_status(status) if status else EntityStatus.ACTIVE,
        int(fields[b"u"]),
        get(b"rs") or None,
        get(b"ns") or None,
    )


def pack_status(status: EntityStatus | BlockingInfo) -> bytes:
    """b"" stands for active; the record then has no status field."""
    if isinstance(status, BlockingInfo):
        notice = b"" if status.notice is None else b"," + status.notice
        return b"b" + status.reason.value.encode() + notice
    return _OFF if status is EntityStatus.OFF else b""


def unpack_status(packed: bytes) -> EntityStatus | BlockingInfo:
    if packed == _OFF:
        return EntityStatus.OFF
    reason, comma, notice = packed[1:].partition(b",")
    return BlockingInfo(BlockingReason(reason.decode()), notice if comma else None)
