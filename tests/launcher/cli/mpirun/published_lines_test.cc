// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Lines of mpirun and mpiexec as vendors and frameworks publish them, word by word, and the ranks
// that each must give to each host. Only hosts, numbers of ranks and programs are filled in where
// the page has a variable. `e2e.mpirun_published_test` runs some of them beside the real programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/translate_mpirun.h"
#include "launcher/cli/options/parse_options.h"
#include "launcher/remote/ssh/job_words.h"
#include "launcher/remote/ssh/make_plan.h"
#include "launcher/text/shell_words.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Published {
  const char* page;   // Repository or site, and the page in it.
  const char* line;   // Without the launcher's name.
  const char* ranks;  // "8" on this host, or "a:2 b:2".
  const char* bind = "";
  const char* ssh = "";
};

const Published kLines[] = {
    // Intel Gaudi.
    {"github.com/HabanaAI/Model-References PyTorch/examples/computer_vision/hello_world/README.md",
     "-n 8 --bind-to core --map-by socket:PE=6 --rank-by slot --report-bindings "
     "--allow-run-as-root -x PT_HPU_LAZY_MODE=0 python3 mnist.py --batch-size=64 --hpu",
     "8", "core:6"},
    {"github.com/HabanaAI/Model-References PyTorch/computer_vision/classification/torchvision",
     "-n 8 --bind-to core --map-by slot:PE=6 --rank-by slot --report-bindings --allow-run-as-root "
     "python3 train.py --data-path=/data --device=hpu",
     "8", "core:6"},
    {"github.com/HabanaAI/Model-References PyTorch/computer_vision/detection/yolox/README.md",
     "-n 8 --bind-to core --map-by socket:PE=6 --rank-by fill --report-bindings "
     "--allow-run-as-root python3 tools/train.py --name yolox-s",
     "8", "core:6"},
    {"github.com/HabanaAI/Model-References PyTorch/computer_vision/classification/torchvision",
     "--allow-run-as-root --mca plm_rsh_args -p3022 --bind-to core --map-by ppr:4:socket:PE=6 "
     "-np 16 --mca btl_tcp_if_include 10.3.124.124/16 --mca ras_base_launch_orted_on_hn 1 "
     "--merge-stderr-to-stdout --prefix /opt/amazon/openmpi -H 10.3.124.124:8,10.3.124.175:8 "
     "-x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT -x GC_KERNEL_PATH -x PT_HPU_LAZY_MODE=0 "
     "python3 -u train.py --batch-size=256",
     "10.3.124.124:8 10.3.124.175:8", "core:6", "-p3022"},
    {"github.com/HabanaAI/Model-References PyTorch/nlp/bert/README.md",  // Its --prefix mended.
     "--allow-run-as-root --mca plm_rsh_args \"-p 3022\" --bind-to core -n 32 "
     "--map-by ppr:4:socket:PE=6 --rank-by slot --report-bindings --prefix /opt/openmpi "
     "--mca btl_tcp_if_include 10.10.100.101/16 --mca ras_base_launch_orted_on_hn 1 "
     "-H 10.10.100.101:16,10.10.100.102:16,10.10.100.103:16,10.10.100.104:16 -x LD_LIBRARY_PATH "
     "-x HABANA_LOGS -x PYTHONPATH -x MASTER_ADDR -x MASTER_PORT -x https_proxy -x http_proxy "
     "-x GC_KERNEL_PATH -x PT_HPU_LAZY_MODE=0 python3 run_pretraining.py --do_train",
     "10.10.100.101:8 10.10.100.102:8 10.10.100.103:8 10.10.100.104:8", "core:6", "-p 3022"},
    {"github.com/huggingface/optimum-habana optimum/habana/distributed/distributed_runner.py",
     "-n 8 --bind-to core --map-by socket:PE=10 --rank-by slot --report-bindings "
     "--allow-run-as-root python3 run_clm.py",
     "8", "core:10"},
    // Horovod.
    {"github.com/horovod/horovod docs/mpi.rst",
     "-np 4 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 "
     "-mca btl ^openib python train.py",
     "4", "none"},
    {"github.com/horovod/horovod docs/mpi.rst",
     "-np 16 -H server1:4,server2:4,server3:4,server4:4 -bind-to none -map-by slot "
     "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib python train.py",
     "server1:4 server2:4 server3:4 server4:4", "none"},
    {"github.com/horovod/horovod docs/mpi.rst",
     "-np 16 -H server1:4,server2:4,server3:4,server4:4 -bind-to none -map-by slot "
     "-mca plm_rsh_args \"-p 12345\" -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 "
     "-mca btl ^openib python train.py",
     "server1:4 server2:4 server3:4 server4:4", "none", "-p 12345"},
    {"github.com/horovod/horovod docs/mpi.rst",
     "-np 16 -H server1:4,server2:4,server3:4,server4:4 -bind-to none -map-by slot "
     "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x HOROVOD_MPI_THREADS_DISABLE=1 -x PATH -mca pml ob1 "
     "python train.py",
     "server1:4 server2:4 server3:4 server4:4", "none"},
    {"github.com/horovod/horovod docs/mpi.rst",
     "-np 16 -H server1:4,server2:4,server3:4,server4:4 -bind-to none -map-by slot "
     "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -x NCCL_SOCKET_IFNAME=^lo,docker0 -mca pml ob1 "
     "-mca btl ^openib -mca btl_tcp_if_exclude lo,docker0 python train.py",
     "server1:4 server2:4 server3:4 server4:4", "none"},
    {"github.com/horovod/horovod docs/oneccl.rst",
     "-n 4 -ppn 2 -hostfile two python ./run_example.py", "a:2 b:2"},
    {"github.com/horovod/horovod horovod/runner/mpi_run.py, for Open MPI",
     "--allow-run-as-root --tag-output -np 4 -H a:2,b:2 -bind-to none -map-by slot -mca pml ob1 "
     "-mca btl ^openib -mca plm_rsh_args \"-p 3022\" -mca btl_tcp_if_include eth0 "
     "-x NCCL_SOCKET_IFNAME=eth0 --output-filename out -x PATH python train.py",
     "a:2 b:2", "none", "-p 3022"},
    {"github.com/horovod/horovod horovod/runner/mpi_run.py, for MPICH",
     "-l -np 4 -ppn 2 -hosts a,b -bind-to none -map-by slot -bootstrap=ssh "
     "-bootstrap-exec-args \"-p 3022\" -genv NCCL_SOCKET_IFNAME=eth0 python train.py",
     "a:2 b:2", "none", "-p 3022"},
    {"github.com/asyml/texar examples/bert/run.sh",
     "-np 2 -H 54.202.134.113:1,54.244.60.228:1 -bind-to none -map-by slot -x NCCL_DEBUG=INFO "
     "-x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib -mca btl_tcp_if_include ens3 "
     "python bert_classifier_main.py --do_train",
     "54.202.134.113:1 54.244.60.228:1", "none"},
    // AWS.
    {"github.com/aws/deep-learning-containers test/efa/scripts/nccl_allreduce.sh",
     "-x FI_PROVIDER=\"efa\" -x FI_EFA_FORK_SAFE=1 -n 16 -N 8 --hostfile two -x NCCL_DEBUG=INFO "
     "-x FI_EFA_USE_DEVICE_RDMA=1 -x NCCL_PROTO=simple -x NCCL_ALGO=ring -x RDMAV_FORK_SAFE=1 "
     "-x PATH -x LD_LIBRARY_PATH=/usr/local/cuda/lib:/usr/local/cuda/lib64: "
     "-x NCCL_SOCKET_IFNAME=^lo --mca pml ^cm --mca btl tcp,self "
     "--mca btl_tcp_if_exclude lo,docker0 --bind-to none all_reduce_perf -b 8 -e 1G -f 2 -g 1",
     "a:8 b:8", "none"},
    {"github.com/aws/deep-learning-containers docs/pytorch/deployment/ec2.md",
     "-np 16 -N 8 -hostfile two -x NCCL_DEBUG=INFO -x FI_PROVIDER=efa all_reduce_perf -b 8",
     "a:8 b:8"},
    {"github.com/aws/sagemaker-training-toolkit src/sagemaker_training/mpi.py",
     "--host algo-1:8,algo-2:8 -np 16 --allow-run-as-root --display-map --tag-output "
     "-mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 -mca plm_rsh_no_tree_spawn 1 "
     "-bind-to none -map-by slot -mca pml ob1 -mca btl ^openib "
     "-mca orte_abort_on_non_zero_status 1 -mca btl_vader_single_copy_mechanism none "
     "-x NCCL_MIN_NRINGS=4 -x NCCL_SOCKET_IFNAME=eth0 -x NCCL_DEBUG=WARN -x LD_LIBRARY_PATH "
     "-x PATH -x LD_PRELOAD=/usr/lib/gethostname.so -x FI_PROVIDER=efa -x NCCL_PROTO=simple "
     "-x SM_HOSTS python -m mpi4py train.py",
     "algo-1:8 algo-2:8", "none"},
    {"github.com/aws-samples/awsome-distributed-training "
     "micro-benchmarks/nccl-tests/kubernetes/nccl-tests.yaml",
     "--allow-run-as-root --tag-output -np 16 -N 8 --bind-to none -x PATH -x LD_LIBRARY_PATH "
     "-x FI_PROVIDER=efa -x FI_EFA_FORK_SAFE=1 -x NCCL_DEBUG=INFO -x NCCL_BUFFSIZE=8388608 "
     "-x NCCL_TUNER_PLUGIN=/opt/amazon/ofi-nccl/lib/libnccl-ofi-tuner.so --mca pml ^ucx "
     "--mca btl tcp,self --mca btl_tcp_if_exclude lo,docker0,veth_def_agent all_reduce_perf",
     "w0:8 w1:8", "none"},
    {"github.com/aws-samples/awsome-distributed-training "
     "micro-benchmarks/nccl-tests/kubernetes/nccl-tests-gb200.yaml",
     "--allow-run-as-root --tag-output -np 8 -npernode 4 --map-by ppr:4:node --bind-to none "
     "-x PATH -x LD_LIBRARY_PATH -x FI_PROVIDER=efa -x NCCL_MNNVL_ENABLE=1 --mca btl tcp,self "
     "all_reduce_perf -b 8 -e 16G",
     "w0:4 w1:4", "none"},
    {"github.com/aws-samples/awsome-distributed-training "
     "1.architectures/3.aws-batch/aws-batch-distributed-training-p6.yaml",
     "--allow-run-as-root --mca btl tcp,self -np 16 --hostfile eights --bind-to none -x PATH "
     "-x LD_LIBRARY_PATH -x NCCL_SOCKET_IFNAME -x NCCL_NET_PLUGIN=ofi all_reduce_perf",
     "a:8 b:8", "none"},
    {"github.com/aws-samples/awsome-distributed-training "
     "3.test_cases/megatron/nemo1.0/EKS/launcher_scripts/conf/data_preparation/gpt3",
     "--allow-run-as-root -np 4 -npernode 2 -bind-to none python download.py", "w0:2 w1:2", "none"},
    {"github.com/pidajay/tpu models/official/mnasnet/train.sh, for AWS",
     "-np 8 -hostfile fours -mca plm_rsh_no_tree_spawn 1 -bind-to socket -map-by slot "
     "-x HOROVOD_HIERARCHICAL_ALLREDUCE=1 -x HOROVOD_FUSION_THRESHOLD=16777216 "
     "-x NCCL_MIN_NRINGS=4 -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib "
     "-x NCCL_SOCKET_IFNAME=ens5 -mca btl_tcp_if_exclude lo,docker0 -x TF_CPP_MIN_LOG_LEVEL=0 "
     "python mnasnet_main_hvd.py --use_tpu=False",
     "a:4 b:4", "socket"},
    // NVIDIA, AMD and Kubernetes.
    {"github.com/NVIDIA/nccl-tests README.md",
     "-np 16 -N 8 ./build/all_reduce_perf -b 8 -e 8G -f 2", "w0:8 w1:8"},
    {"github.com/ROCm/rccl-tests README.md",
     "-np 8 --bind-to numa ./build/all_reduce_perf -b 8 -e 128M -f 2 -g 1", "8", "numa"},
    {"github.com/kubeflow/mpi-operator README.md",
     "--allow-run-as-root -np 2 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH "
     "-x PATH -mca pml ob1 -mca btl ^openib python tf_cnn_benchmarks.py --model=resnet101",
     "w0:2", "none"},
    {"mindspore.cn tutorials parallel/mpirun.md",
     "--output-filename log_output --merge-stderr-to-stdout -np 8 python net.py", "8"},
    {"a script for ROCm, test_sharded_moe.py",
     "--allow-run-as-root -mca btl_openib_warn_no_device_params_found 0 -mca pml ob1 "
     "-mca btl ^openib -mca btl_tcp_if_include eth0 --tag-output --npernode 4 --bind-to numa "
     "-x MIOPEN_FIND_MODE=1 python test_sharded_moe.py",
     "w0:4 w1:4", "numa"},
    // Intel.
    {"github.com/intel/torch-ccl README.md", "-n 4 -ppn 2 -f two python example.py", "a:2 b:2"},
    {"github.com/intel/torch-ccl demo/README.md", "-n 2 -l python demo.py --device xpu", "2"},
    {"github.com/intel/torch-ccl demo/README.md",
     "-host 10.0.0.1,10.0.0.2 -np 2 -ppn 1  --map-by node  python demo.py --device cpu",
     "10.0.0.1:1 10.0.0.2:1"},
    {"github.com/intel/torch-ccl tests/README.md",
     "-host nodeA,nodeB -np 24 -ppn 12 python -u test_p2p_crossnodes.py --world_size 24",
     "nodeA:12 nodeB:12"},
    {"github.com/intel/torch-ccl src/test/remotesync/test.sh",
     "--prepend-rank -n 2 -ppn 2 ./simple_test 1", "2"},
    {"github.com/intel/intel-extension-for-pytorch cpu/launch/launcher_distributed.py",
     "-l -np 4 -ppn 2 -genv OMP_NUM_THREADS=24 -genv MASTER_ADDR=10.0.0.1 -genv MASTER_PORT=29500 "
     "-genv I_MPI_PIN_DOMAIN=[0xfffffff,0xfffffff0000000] -genv CCL_WORKER_COUNT=4 "
     "-genv CCL_WORKER_AFFINITY=0,1,2,3,28,29,30,31 -hostfile two python -u train.py",
     "a:2 b:2"},
    {"intel.com mpi-library developer-guide-linux, running-an-mpi-program",
     "-n 4 -ppn 2 -f two  ./myprog", "a:2 b:2"},
    {"github.com/oneapi-src/oneCCL doc/rst/source/benchmark-guide/benchmark.rst",
     "-n 4 -ppn 4 benchmark -a gpu -m usm -u device -l allreduce -i 20 -f 1024", "4"},
    // Azure.
    {"github.com/Azure/azhpc-images tests/health_checks/NDv4/test-nccl.sh",
     "-np 8 --bind-to numa --map-by ppr:8:node "
     "-x LD_LIBRARY_PATH=/usr/local/nccl-rdma-sharp-plugins/lib: -mca coll_hcoll_enable 0 "
     "-x NCCL_IB_PCI_RELAXED_ORDERING=1 -x UCX_TLS=tcp -x UCX_NET_DEVICES=eth0 "
     "-x CUDA_DEVICE_ORDER=PCI_BUS_ID -x NCCL_SOCKET_IFNAME=eth0 all_reduce_perf -c 1 -b4G",
     "8", "numa"},
    {"github.com/Azure/azhpc-images tests/test-definitions.sh",
     "-np 2 -ppn 2 -env MV2_USE_SHARED_MEM=0 -env MV2_FORCE_HCA_TYPE=22 osu_latency", "2"},
    {"github.com/Azure/azurehpc apps/health_checks/allreduce.sh",
     "--host hb1:120 -np 120 --mca pml ucx --mca btl ^vader,tcp,openib,uct IMB-MPI1 Allreduce "
     "-iter 10000 -npmin 120",
     "hb1:120"},
    {"github.com/Azure/azurehpc apps/health_checks/run_ring_osu_bw.sh",
     "-np 2 -hosts src,dst -env MV2_SHOW_CPU_BINDING 2 osu_bw", "src:1 dst:1"},
    {"github.com/Azure/azurehpc apps/gromacs/run_intelmpi.sh",
     "-ppn 2 -np 4 --hostfile two gmx_mpi mdrun -s case -maxh 1.00", "a:2 b:2"},
    // DeepSpeed and accelerate.
    {"github.com/microsoft/DeepSpeed deepspeed/launcher/multinode_runner.py, OpenMPIRunner",
     "-n 8 -hostfile fours --mca btl ^openib --mca btl_tcp_if_include eth0 -x UCX_TLS=tcp "
     "-x NCCL_DEBUG=INFO python -u train.py --deepspeed",
     "a:4 b:4"},
    {"github.com/microsoft/DeepSpeed deepspeed/launcher/multinode_runner.py, MPICHRunner",
     "-n 4 -ppn 2 -genv NCCL_DEBUG=INFO -genv MASTER_ADDR a -genv MASTER_PORT 29500 "
     "-genv WORLD_SIZE 4 -genv LOCAL_SIZE 2 -hosts a,b python -u launcher_helper.py --launcher "
     "mpich train.py",
     "a:2 b:2"},
    {"github.com/microsoft/DeepSpeed deepspeed/launcher/multinode_runner.py, IMPIRunner",
     "-ppn 2 -genv NCCL_DEBUG INFO -genv MASTER_ADDR a -genv MASTER_PORT 29500 -genv WORLD_SIZE 4 "
     "-genv LOCAL_SIZE 2 -genv I_MPI_PIN 0 -hosts a,b "
     "-n 1 -env RANK 0 -env LOCAL_RANK 0 python -u t.py : -n 1 -env RANK 1 -env LOCAL_RANK 1 "
     "python -u t.py : -n 1 -env RANK 2 -env LOCAL_RANK 0 python -u t.py : -n 1 -env RANK 3 "
     "-env LOCAL_RANK 1 python -u t.py",
     "a:2 b:2"},
    {"github.com/microsoft/DeepSpeed deepspeed/launcher/multinode_runner.py, MVAPICHRunner",
     "-np 4 -ppn 2 --hostfile two -env MV2_SMP_USE_CMA=0 -env MV2_DEBUG_SHOW_BACKTRACE=1 "
     "-env MV2_SUPPORT_DL=1 -env MV2_ENABLE_AFFINITY=0 python -u train.py",
     "a:2 b:2"},
    {"github.com/microsoft/DeepSpeed docs/_tutorials/onebit-adam.md",
     "-np 4 -ppn 2 -hostfile two -env MV2_USE_CUDA=1 -env MV2_SUPPORT_DL=1 "
     "-env MV2_ENABLE_AFFINITY=0 -env MV2_SMP_USE_CMA=0 bash run_squad_mpi_onebitadam.sh",
     "a:2 b:2"},
    {"github.com/huggingface/accelerate src/accelerate/utils/launch.py, Open MPI",
     "--hostfile two --npernode 2 -n 4 --bind-to socket python train.py", "a:2 b:2", "socket"},
    {"github.com/huggingface/accelerate src/accelerate/utils/launch.py, Intel MPI",
     "-f two -ppn 2 -n 4 python train.py", "a:2 b:2"},
};

// Only these files exist. The hosts w0 and w1 are those of the variables that Kubeflow's MPIJob
// sets.
absl::StatusOr<std::string> ReadHosts(const std::string& path) {
  if (path == "two") return "a\nb\n";
  if (path == "fours") return "a slots=4\nb slots=4\n";
  if (path == "eights") return "a slots=8\nb slots=8\n";
  if (path == "/etc/mpi/hostfile") return "w0 slots=8\nw1 slots=8\n";
  return absl::InvalidArgumentError(path + ": no such file");
}

// What the places that the lines are written for set.
Environment Site(const Published& published) {
  std::vector<std::string> entries = {"PATH=/bin", "LD_LIBRARY_PATH=/lib", "PYTHONPATH=/p",
                                      "MASTER_ADDR=10.3.124.124", "MASTER_PORT=12355"};
  if (absl::StartsWith(published.ranks, "w0")) {
    entries.emplace_back("OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile");
  }
  return Environment(entries);
}

struct Placed {
  std::string ranks;
  std::string bind, ssh;
  std::vector<std::string> variables;
};

// The number of ranks that the words for a host say, as in "--nproc-per-node 4:socket=8".
std::string RanksIn(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!absl::StartsWith(words[i], "--nproc-per-node")) continue;
    const bool apart = !absl::StrContains(words[i], "=") && i + 1 < words.size();
    const std::string& value = apart ? words[i + 1] : words[i];
    return value.substr(value.rfind('=') + 1);
  }
  return "none";
}

absl::StatusOr<std::string> RanksByHost(Options options) {
  if (!options.hosts.any()) return absl::StrCat(options.nproc.value_or(0));
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<TargetHost> hosts, FindHosts(options.hosts, ReadHosts));
  HLAUNCH_RETURN_IF_ERROR(FitNodesToHosts(options, hosts));
  std::vector<std::string> each;
  for (const TargetHost& host : hosts) {
    const int rank = static_cast<int>(each.size());
    each.push_back(
        absl::StrCat(host.Login(), ":", RanksIn(WordsForHost(options, host, rank, "7"))));
  }
  return absl::StrJoin(each, " ");
}

absl::StatusOr<Placed> PlacedBy(const std::string& line, const Environment& environment) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> typed, SplitWords(line));
  HLAUNCH_ASSIGN_OR_RETURN(const TranslatedLine translated,
                           TranslateMpirun(typed, environment, ReadHosts));
  std::vector<const char*> words;
  Placed placed;
  for (const std::string& word : translated.words) {
    words.push_back(word.c_str());
    absl::string_view bind = word;
    if (absl::ConsumePrefix(&bind, "--bind=")) placed.bind = std::string(bind);
  }
  HLAUNCH_ASSIGN_OR_RETURN(const Options options,
                           ParseOptions(static_cast<int>(words.size()), words.data()));
  HLAUNCH_ASSIGN_OR_RETURN(placed.ranks, RanksByHost(options));
  placed.variables = options.hosts.variables;
  placed.ssh = translated.ssh_arguments;
  return placed;
}

// The variables that the words of a line give to all its ranks, with a value.
std::set<std::string> VariablesIn(const std::string& line) {
  const std::vector<std::string> words = SplitWords(line).value();
  std::set<std::string> variables;
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == "-x" && absl::StrContains(words[i + 1], "=")) variables.insert(words[i + 1]);
    if (words[i] != "-genv") continue;
    variables.insert(absl::StrContains(words[i + 1], "=")
                         ? words[i + 1]
                         : absl::StrCat(words[i + 1], "=", words[i + 2]));
  }
  return variables;
}

TEST(PublishedLines, GiveEachHostItsRanks) {
  for (const Published& published : kLines) {
    SCOPED_TRACE(absl::StrCat(published.page, "\n  mpirun ", published.line));
    const auto placed = PlacedBy(published.line, Site(published));
    ASSERT_TRUE(placed.ok()) << placed.status();
    EXPECT_EQ(placed->ranks, published.ranks);
    EXPECT_EQ(placed->bind, published.bind);
    EXPECT_EQ(placed->ssh, published.ssh);
    for (const std::string& variable : VariablesIn(published.line)) {
      EXPECT_THAT(placed->variables, Contains(variable));
    }
  }
}

TEST(PublishedLines, ThatCannotMeanWhatTheySayAreRefusedWithTheWayOut) {
  const struct {
    Published published;
    const char* says;
  } rows[] = {
      {{"github.com/HabanaAI/Model-References PyTorch/nlp/bert/README.md",
        "--bind-to core -n 32 --rank-by slot --prefix --mca btl_tcp_if_include 10.10.100.101/16 "
        "--mca ras_base_launch_orted_on_hn 1 /opt/openmpi -H a:16,b:16 python3 train.py",
        ""},
       "--prefix needs a value, DIR, and what follows is another word, --mca"},
      {{"github.com/horovod/horovod horovod/runner/mpi_run.py, for MPICH with --network-interface",
        "-l -np 4 -ppn 2 -hosts a,b -iface eth0 python train.py", ""},
       "-iface: name the network in the MPI's own words"},
      {{"github.com/Azure/azurehpc apps/ior/ior.sh", "-bind-to hwthread -np 4 ior -a POSIX", ""},
       "a core is never split; write core"},
      {{"github.com/oneapi-src/oneCCL doc/rst/source/env-variables.rst, for PALS",
        "-np 2 -ppn 2 --pmi=pmix ./a", ""},
       "unknown option --pmi"},
      {{"github.com/intel/torch-ccl src/test/remotesync/test.sh",
        "--prepend-rank -n 2 -ppn 2 -outfile-pattern log/out.%r.log ./simple_test", ""},
       "write --output-filename DIR"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.published.line);
    const auto placed = PlacedBy(row.published.line, Site(row.published));
    ASSERT_FALSE(placed.ok());
    EXPECT_THAT(std::string(placed.status().message()), HasSubstr(row.says));
  }
}

TEST(PublishedLines, AreReadUnderTheNamesOfEachLauncher) {
  for (const char* name : {"mpirun", "/opt/amazon/openmpi/bin/mpirun", "mpiexec", "mpiexec.hydra",
                           "mpirun.openmpi", "orterun", "prterun", "mpiexec.mpich"}) {
    EXPECT_TRUE(IsMpirunName(name)) << name;
  }
  for (const char* name : {"hlaunch", "torchrun", "mpirun_rsh", "mpiexecutable"}) {
    EXPECT_FALSE(IsMpirunName(name)) << name;
  }
}

}  // namespace
}  // namespace hlaunch
