/** A worker that is blocked for half a minute. */
import { assert, it } from "@effect/vitest"
import { accounts, chat } from "../../gateway/support.ts"
import { startCluster } from "../cluster.ts"

it("is killed and started again", async () => {
  const cluster = await startCluster({ nodes: 0, config: { accounts: accounts("a", "b") } })
  try {
    const machine = await cluster.add("m", { GATEWAY_WORKERS: "2" })
    const [, blocked] = await machine.running.printed(/Worker m-1 serves \(process (\d+)\)/)
    await machine.running.printed(/Worker m-2 serves/)
    process.kill(Number(blocked), "SIGSTOP")
    await machine.running.printed(/Worker m-1 has ended \(signal SIGKILL\)/)
    await machine.running.printed(/Worker m-3 serves/)
    assert.strictEqual((await chat(machine.url, "!say one")).text, "one")
  } finally {
    await cluster.stop()
  }
})
