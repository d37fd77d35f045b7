"""Rows of images from a running `fovea serve`.

usage: encode_over_http.py URL IMAGE...      (a URL like http://localhost:8080 or unix:/run/fovea.sock)
"""

import sys

import fovea_encoder.client


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__.strip() if __doc__ else "", file=sys.stderr)
        return 2
    url, *images = sys.argv[1:]
    failed = 0
    with fovea_encoder.client.Client(url) as client:
        print(f"{url}: {client.info()['model']}, {client.health()}")
        for item in client.encode(images, on_error="record"):
            if item.error is not None:
                print(item.error, file=sys.stderr)
                failed += 1
            else:
                print(f"{item.name}: {item.shape[0]} rows of {item.shape[1]} {item.dtype}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
