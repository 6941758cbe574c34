// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// libudev has no static library. hwloc asks it about disks and works without it; hlaunch asks hwloc
// only about CPUs. So a program that contains hwloc gets these functions in place of libudev. Only
// the first is ever called.

extern "C" {

void* udev_new() { return nullptr; }
void* udev_unref(void*) { return nullptr; }
void* udev_device_new_from_subsystem_sysname(void*, const char*, const char*) { return nullptr; }
const char* udev_device_get_property_value(void*, const char*) { return nullptr; }
void* udev_device_unref(void*) { return nullptr; }

}  // extern "C"
