import os
import sys
import tempfile

import fuel

print(fuel.AMOUNT, os.path.basename(fuel.__file__), fuel.__spec__.name)
with open("made.txt", "w") as file:
    file.write("made by the script\n")
os.mkdir("below")
os.chdir("below")
with open("deep.bin", "wb") as file:
    file.write(bytes(100))
print(os.path.basename(os.getcwd()), sorted(os.listdir("..")))
