"""All that test_agreement.py asks a host, in one process: `agreeing.py DEVICE ANSWERS`, which becomes an archive.

A file `start` is another host's checkpoint, to go on from; without one it goes on from its own.
"""

import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.hosts import draws, losses, soak

STEPS, MORE_STEPS, SOAKED = 50, 60, 200


def main(device: str, answers: str) -> None:
    draws.main(device, "draws")
    losses.main(device, str(STEPS), "checkpoint")
    losses.main(device, str(MORE_STEPS), "gone_on", "start" if Path("start").exists() else "checkpoint")
    soak.main(device, str(SOAKED), "memory")
    with zipfile.ZipFile(answers, "w") as archive:
        for name in ("draws", "checkpoint", "gone_on", "memory"):
            archive.write(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
