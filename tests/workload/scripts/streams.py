import sys

raw = sys.stdin.buffer.read()
sys.stdout.buffer.write(bytes(range(256)) + raw[::-1])
sys.stderr.buffer.write(b"\xff\x00 done\n")
