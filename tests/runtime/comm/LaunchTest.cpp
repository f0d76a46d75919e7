//===- LaunchTest.cpp - how a process was started --------------------------===//

#include "runtime/comm/Launch.h"

#include <gtest/gtest.h>

#include <map>

namespace tessera {
namespace {

using Variables = std::map<std::string, std::string>;

Result<LaunchPlan> plan(const Variables &variables, const std::string &wanted = "auto") {
  return planLaunch(wanted, [&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

LaunchKind kindOf(const Variables &variables, const std::string &wanted = "auto") {
  auto made = plan(variables, wanted);
  EXPECT_TRUE(made.isOk()) << made.status();
  return made.isOk() ? made->kind : LaunchKind::Local;
}

std::string errorOf(const Variables &variables, const std::string &wanted = "auto") {
  return plan(variables, wanted).status().message();
}

const Variables torchrun = {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};

TEST(Launch, WithoutALauncherRanksAreThreads) {
  EXPECT_EQ(kindOf({}), LaunchKind::Local);
  EXPECT_EQ(kindOf({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}), LaunchKind::Local); // a batch script
  EXPECT_EQ(kindOf({{"OMPI_COMM_WORLD_SIZE", "1"}}), LaunchKind::Local);
  EXPECT_EQ(kindOf({{"WORLD_SIZE", "1"}}), LaunchKind::Local);
  EXPECT_EQ(kindOf(torchrun, "local"), LaunchKind::Local);
}

TEST(Launch, MpirunAndSrunWithPmixAreMpi) {
  EXPECT_EQ(kindOf({{"OMPI_COMM_WORLD_SIZE", "4"}}), LaunchKind::Mpi);
  EXPECT_EQ(kindOf({{"PMI_SIZE", "2"}}), LaunchKind::Mpi);
  EXPECT_EQ(kindOf({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}), LaunchKind::Mpi);
  EXPECT_EQ(kindOf({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), LaunchKind::Local);
  EXPECT_NE(errorOf({}, "mpi").find("was not started by mpirun"), std::string::npos);
}

TEST(Launch, TorchrunIsTcp) {
  auto made = plan(torchrun);
  ASSERT_TRUE(made.isOk()) << made.status();
  EXPECT_EQ(made->kind, LaunchKind::Tcp);
  EXPECT_EQ(made->tcp.rank, 2);
  EXPECT_EQ(made->tcp.numRanks, 4);
  EXPECT_EQ(made->tcp.host, "node1");
  EXPECT_EQ(made->tcp.port, 29500);
  Variables variables = torchrun;
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True"; // its agent listens on MASTER_PORT
  EXPECT_EQ(plan(variables)->tcp.port, 29501);
  variables["TESSERA_PORT"] = "4000";
  EXPECT_EQ(plan(variables)->tcp.port, 4000);
}

TEST(Launch, SlurmWithoutPmixMeetsOnItsFirstHost) {
  Variables variables = {{"SLURM_STEP_NUM_TASKS", "4"},
                         {"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_JOB_ID", "1234"},
                         {"SLURM_STEP_ID", "2"}};
  const std::pair<const char *, const char *> lists[] = {{"gpu[07-09,12],login1", "gpu07"},
                                                         {"gpu7,gpu[08-09]", "gpu7"},
                                                         {"node-a", "node-a"},
                                                         {"n[3,5-6]-ib,x1", "n3-ib"},
                                                         {"r[12].site", "r12.site"}};
  for (auto [list, host] : lists) {
    variables["SLURM_JOB_NODELIST"] = list;
    auto made = plan(variables);
    ASSERT_TRUE(made.isOk()) << made.status();
    EXPECT_EQ(made->kind, LaunchKind::Tcp);
    EXPECT_EQ(made->tcp.rank, 3);
    EXPECT_EQ(made->tcp.numRanks, 4);
    EXPECT_EQ(made->tcp.host, host);
    EXPECT_EQ(made->tcp.port, 20000 + (1234 * 37 + 2) % 10000); // the same for all tasks of the step
  }
  variables["SLURM_STEP_NODELIST"] = "other"; // a step on some of the job's hosts
  variables["TESSERA_PORT"] = "4000";
  EXPECT_EQ(plan(variables)->tcp.host, "other");
  EXPECT_EQ(plan(variables)->tcp.port, 4000);
  variables["MASTER_ADDR"] = "node1";
  EXPECT_EQ(plan(variables)->tcp.host, "node1");
}

TEST(Launch, SlurmWithoutPmixNeedsAMeetingPoint) {
  Variables variables = {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}};
  EXPECT_NE(errorOf(variables).find("use 'srun --mpi=pmix', or set MASTER_ADDR"), std::string::npos);
  for (const char *list : {"rack[1-2]n[1-4]", "gpu[1-", "["}) {
    variables["SLURM_JOB_NODELIST"] = list;
    EXPECT_NE(errorOf(variables).find("use 'srun --mpi=pmix', or set MASTER_ADDR"), std::string::npos) << list;
  }
  variables["MASTER_ADDR"] = "node1";
  EXPECT_NE(errorOf(variables).find("MASTER_PORT"), std::string::npos);
  variables["MASTER_PORT"] = "29500";
  EXPECT_EQ(kindOf(variables), LaunchKind::Tcp);
  variables["SLURM_PROCID"] = "4";
  EXPECT_NE(errorOf(variables).find("0 <= SLURM_PROCID"), std::string::npos);
}

TEST(Launch, ContradictionsAreErrors) {
  Variables variables = torchrun;
  variables["RANK"] = "4";
  EXPECT_NE(errorOf(variables).find("0 <= RANK < WORLD_SIZE"), std::string::npos);
  variables.erase("RANK");
  EXPECT_NE(errorOf(variables).find("RANK=''"), std::string::npos);
  variables = torchrun;
  variables["MASTER_PORT"] = "70000";
  EXPECT_NE(errorOf(variables).find("MASTER_PORT"), std::string::npos);
  EXPECT_NE(errorOf({}, "tcp").find("--comm tcp needs RANK"), std::string::npos);
  EXPECT_NE(errorOf({}, "nccl").find("unknown 'nccl'"), std::string::npos);
}

TEST(Launch, TheRankIsKnownBeforeTheOthersAreReached) {
  auto rankOf = [](const Variables &variables, const std::string &wanted = "auto") {
    return launchedRank(wanted, [&](const char *name) {
      auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_EQ(rankOf(torchrun), 2);
  EXPECT_EQ(rankOf(torchrun, "local"), std::nullopt);
  EXPECT_EQ(rankOf({}), std::nullopt);
  EXPECT_EQ(rankOf({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}), std::nullopt); // a batch script
  EXPECT_EQ(rankOf({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}}), 3);
  EXPECT_EQ(rankOf({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), 4); // the error says of which process it is
  EXPECT_EQ(rankOf({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "1"}}), 1);
}

} // namespace
} // namespace tessera
