"""SMP commands and replies as bytes, at versions 6 to 19: the four functions the other packages use."""

from weir.wire.smp.command_codec import decode_command, encode_command
from weir.wire.smp.reply_codec import decode_reply, encode_reply

__all__ = ["decode_command", "decode_reply", "encode_command", "encode_reply"]
