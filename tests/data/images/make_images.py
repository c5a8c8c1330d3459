"""Makes the images of this folder, and expected.npz: what Pillow and torchvision make of them.

    /usr/bin/python3 make_images.py     # needs python3-numpy, python3-pil, python3-torchvision

expected.npz holds uint8 arrays [1, channels, height, width], "NAME" as decoded and "NAME:VARIANT" as resized and cropped, and
float32 ones where the variant normalises. test_images.c compares them with what prony_image_load makes.
"""
import struct
import zlib

import numpy as np
from PIL import Image
from torchvision import transforms
from torchvision.transforms.functional import center_crop

HEIGHT, WIDTH = 29, 37


def picture():
    """Slopes, a disc with a hard edge and some noise, in three channels."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    disc = ((x - 14) ** 2 + (y - 15) ** 2 < 81)[..., None] * np.array([90, -60, 40])
    slopes = np.stack([x * 255 / (WIDTH - 1), y * 255 / (HEIGHT - 1), (x + y) * 255 / (HEIGHT + WIDTH - 2)], -1)
    noise = np.random.default_rng(7).integers(-12, 13, (HEIGHT, WIDTH, 3))
    return np.clip(slopes * 0.8 + disc + noise, 0, 255).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(name, passes, colour, bits, interlaced=0):
    """`passes` are arrays of rows of bytes; filter 0 everywhere."""
    rows = b"".join(b"\0" + row.tobytes() for rows in passes for row in rows)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour, 0, 0, interlaced)
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def adam7(pixels):
    for y, x, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        yield pixels[y::dy, x::dx]


def write_images(rgb):
    image = Image.fromarray(rgb)
    alpha = Image.fromarray(np.tile(np.arange(WIDTH, dtype=np.uint8) * 6, (HEIGHT, 1)))
    image.save("rgb.png")
    image.convert("L").save("grey.png")
    image.convert("1").save("bits.png")
    image.quantize(32).save("palette.png", transparency=3)
    Image.merge("RGBA", (*image.split(), alpha)).save("rgba.png")
    Image.merge("LA", (image.convert("L"), alpha)).save("grey_alpha.png")
    wide = rgb.astype(">u2") * 256 + np.roll(rgb, 1, 0)
    write_png("rgb16.png", [wide], 2, 16)
    write_png("grey16.png", [wide[..., 0].copy()], 0, 16)
    write_png("interlaced.png", list(adam7(rgb)), 2, 8, 1)
    image.save("rgb.jpg", quality=85)
    image.save("progressive.jpg", quality=85, progressive=True)
    image.convert("L").save("grey.jpg", quality=85)
    image.convert("CMYK").save("cmyk.jpg", quality=85)


def planes(image):
    array = np.asarray(image)
    return (array[..., None] if array.ndim == 2 else array).transpose(2, 0, 1)[None].copy()


def main():
    rgb, expected = picture(), {}
    write_images(rgb)
    for name in ("rgb.png", "grey.png", "bits.png", "palette.png", "rgba.png", "grey_alpha.png", "rgb16.png", "interlaced.png",
                 "rgb.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg"):
        expected[name] = planes(Image.open(name).convert("RGB"))
    # Pillow clips grey of 16 bits at 255; here the upper 8 bits stand for it, as with colours.
    upper = np.asarray(Image.open("grey16.png")).astype(np.int32) >> 8
    expected["grey16.png"] = np.repeat(upper[None, None], 3, 1).astype(np.uint8)
    bilinear, bicubic = Image.BILINEAR, Image.BICUBIC
    for name in ("rgb.png", "rgb.jpg"):
        image = Image.open(name).convert("RGB")
        expected[name + ":shorter"] = planes(center_crop(transforms.Resize(16, transforms.InterpolationMode.BILINEAR)(image), [11, 14]))
        expected[name + ":exact"] = planes(image.resize((8, 13), bilinear))
        expected[name + ":larger"] = planes(image.resize((90, 31), bilinear))
        expected[name + ":bicubic"] = planes(image.resize((12, 50), bicubic))
        expected[name + ":crop"] = planes(center_crop(image, [20, 20]))
        expected[name + ":grey"] = planes(image.convert("L").resize((10, 10), bilinear))
    steps = [transforms.Resize(16, transforms.InterpolationMode.BILINEAR), transforms.CenterCrop(14), transforms.ToTensor(),
             transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    expected["rgb.png:imagenet"] = transforms.Compose(steps)(Image.open("rgb.png").convert("RGB"))[None].numpy()
    np.savez_compressed("expected.npz", **expected)


main()
