// Tests of several nodes need a real redis-server. If the machine has no redis-server, it is installed when that needs no password.
// Otherwise the run continues, and those tests fail with a message that says what to install.
import { spawnSync } from "node:child_process"

const works = (command: string): boolean => spawnSync(command, ["--version"], { stdio: "ignore" }).status === 0

/** Installs redis-server with apt-get if the process runs as root. */
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
