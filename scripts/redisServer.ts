// Tests of many nodes need a real redis-server. Where there is none it is installed, if that can be done without asking;
// else the run goes on, and those tests fail and say what to install.
import { spawnSync } from "node:child_process"

const works = (command: string): boolean => spawnSync(command, ["--version"], { stdio: "ignore" }).status === 0

/** Installs redis-server on Debian and its kin, for whoever may. */
export const provideRedisServer = (): void => {
  const named = process.env.REDIS_SERVER
  if ([...(named === undefined ? [] : [named]), "redis-server", "valkey-server"].some(works)) return
  if (process.getuid?.() !== 0 || !works("apt-get")) return
  console.log("Installing redis-server…")
  const run = (...args: ReadonlyArray<string>) =>
    spawnSync("apt-get", args, { stdio: "ignore", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } })
  run("update")
  run("install", "--yes", "--no-install-recommends", "redis-server")
}
