#!/usr/bin/env python3
"""prony devices and profiles on a device: measured peaks and compiled programs are kept for later processes.

    test_devices.py PRONY SOURCE_DIR [unittest options]
"""
import glob
import json
import os
import unittest

import command_case
from command_case import DONE, FAILED, run


class Devices(command_case.CommandTest):
    def setUp(self):
        super().setUp()
        # PoCL needs a folder of its own that it can write.
        self.environment = {"XDG_CACHE_HOME": self.path("cache"), "PRONY_DEVICE_CACHE": "",
                            "POCL_CACHE_DIR": os.path.join(command_case.CACHE.name, "pocl")}

    def json_of(self, *arguments):
        status, out, error = run(*arguments, "--json", "-", environment=self.environment)
        if status == FAILED and "no device" in error:
            raise unittest.SkipTest(error.strip())
        self.assertEqual((status, error), (DONE, ""))
        return json.loads(out)

    def profile(self):
        report = self.json_of("profile", self.digits, "-r", "3", "--device", "opencl")
        self.assertEqual(command_case.Schema("report").problems(report), [])
        return report["device"]

    def test_peaks_are_kept(self):
        devices = self.json_of("devices")["devices"]
        self.assertEqual(len(glob.glob(self.path("cache/prony/device-*.json"))), len({d["name"] for d in devices}))
        device = self.profile()
        measured = [d for d in devices if d["id"] == device["info"]["id"]][0]
        for key, value in device["peaks"].items():
            self.assertAlmostEqual(measured[key] / value, 1, 4)
        for row in device["operators"]:
            shares = [row[key] / device["peaks"][key] for key in ("flops_per_second", "bytes_per_second")]
            self.assertAlmostEqual(row["percent_of_roof"] / (100 * max(shares)), 1, 6)
            self.assertIn(row["bound"], ("compute", "memory", "overhead"))

    def test_a_later_process_compiles_nothing(self):
        first, second = self.profile(), self.profile()
        self.assertNotIn("peaks", first)
        self.assertEqual(first["programs_loaded"], 0)
        self.assertEqual((second["programs"], second["programs_loaded"]), (first["programs"], first["programs"]))
        self.assertEqual(len(os.listdir(self.path("cache/prony/opencl"))), first["programs"])
        self.environment["PRONY_DEVICE_CACHE"] = "off"
        self.assertEqual(self.profile()["programs_loaded"], 0)

    def test_a_folder_that_cannot_be_written(self):
        self.json_of("devices")
        self.environment["XDG_CACHE_HOME"] = "/proc/nowhere"
        status, out, error = run("devices", environment=self.environment)
        self.assertEqual(status, DONE)
        self.assertIn("GFLOP/s", out)
        self.assertIn("not kept: '/proc/nowhere'", error)
        self.assertEqual(self.profile()["programs_loaded"], 0)


if __name__ == "__main__":
    command_case.main()
