// The CPU time of this process and of what it has started, from the tables of Linux.
import { readFileSync } from "node:fs"

/** The clock ticks of a second in these tables, which Linux shows programs as 100 on every machine. */
const ticks = 100

/** User and system time in seconds of this process and of its ended children; of the process alone on another system than Linux. */
export const cpuSeconds = (): number => {
  if (process.platform !== "linux") {
    const { system, user } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const stat = readFileSync("/proc/self/stat", "utf8")
  // Behind the name: the state, then numbers. First come the times of the process, then of its ended children.
  const times = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 15)
  return times.reduce((sum, each) => sum + Number(each), 0) / ticks
}
