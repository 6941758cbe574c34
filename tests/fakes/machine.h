// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// A machine described as a tree of files below a directory of its own, which goes with it. What
// is added lies where the kernel and the drivers would put it. Belongs to one test.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const std::string& root() const { return root_; }

  void Put(const std::string& path, const std::string& text);
  void Link(const std::string& path, const std::string& target);
  void Remove(const std::string& path);

  struct Function {
    std::string address;
    std::string vendor;
    std::string device;
    std::string device_class;
    std::string driver;
    int numa_node = -1;
    std::string cpus;
  };
  void AddPci(const Function& function);

  // As drivers of today show a Gaudi 2, and as those before the accel class did.
  void AddGaudi(int index, int module_id, const std::string& address, int numa_node,
                const std::string& cpus = "");
  void AddOldGaudi(int index, int module_id, const std::string& address);
  void AddNvidia(int minor, const std::string& address, const std::string& model, int numa_node,
                 const std::string& cpus = "");
  void AddMig(int minor, int gpu_instance, int compute_instance);
  void AddAmd(int node, int minor, const std::string& address, int numa_node);
  void AddXpu(int minor, const std::string& address, const std::string& driver,
              const std::string& device, int tiles);
  void AddAscend(int index, const std::string& address);
  void AddNeuron(int index, int cores);
  void AddTpu(int place, const std::string& address, const std::string& device);
  // A process with what it has open.
  void AddProcess(int pid, const std::string& command, const std::vector<std::string>& open);
  void AddCpus(int sockets, int cores_per_socket, int threads_per_core);

 private:
  // The path on the host of a file whose folder lies below the root, whatever links were added:
  // a test must never write to the machine that runs it.
  std::string Inside(const std::string& path) const;

  std::string root_;
};

// Whole servers, as their makers build them: two sockets and eight devices, four at each.
void DescribeGaudi2Server(Machine& machine);
void DescribeH100Server(Machine& machine);
void DescribeMi300Server(Machine& machine);

}  // namespace hlaunch
