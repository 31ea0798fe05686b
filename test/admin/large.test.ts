/** Many accounts through the admin API, on a real file, while the gateway serves other requests. */
import { NodeServices } from "@effect/platform-node"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Layer } from "effect"
import * as fs from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { sliceChars, sliceItems, type SliceSize } from "../../src/domain/stream/cooperative.ts"
import { withVariables } from "../config/support.ts"
import { sized } from "../support/effort.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller } from "./support.ts"

/** A hundred thousand in a whole run. */
const count = sized(100_000)

const accounts = Array.from({ length: count }, (_, index) =>
  index % 2 === 0
    ? { email: `user${index}@example.test`, password: `password-${index}` }
    : { mobile: `138${String(index).padStart(8, "0")}`, password: `password-${index}` })

let folder: string
const slices: Array<SliceSize> = []
let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  folder = await fs.mkdtemp(path.join(tmpdir(), "admin-large-"))
  gateway = await startGateway({}, {
    watchSlices: (size) => slices.push(size),
    store: ConfigStore.layer.pipe(
      Layer.provide(Environment.layer),
      Layer.provide(
        withVariables({ GATEWAY_ADMIN_KEY: adminKey, GATEWAY_CONFIG_PATH: path.join(folder, "config.json") })
      ),
      Layer.provide(NodeServices.layer)
    )
  })
})
afterAll(async () => {
  await gateway.stop()
  await fs.rm(folder, { recursive: true })
})

/** The slices of the work, and the most of them within one turn of the event loop. */
const sliced = async <A>(run: () => Promise<A>) => {
  slices.length = 0
  let most = 0
  let seen = 0
  let over = false
  const turn = () => {
    most = Math.max(most, slices.length - seen)
    seen = slices.length
    if (!over) setImmediate(turn)
  }
  setImmediate(turn)
  const value = await run()
  over = true
  return { value, most, slices: [...slices] }
}

const itemsOf = (sizes: ReadonlyArray<SliceSize>) => sizes.reduce((sum, { items }) => sum + items, 0)

describe("the admin API with many accounts", () => {
  it("imports, lists, exports and changes them in slices, with turns of the event loop in between", async () => {
    const text = JSON.stringify({ config: { keys: ["k"], accounts } })
    const list = JSON.stringify({ accounts })
    /**
     * The steps, each with the minimum of walks over all accounts that it causes, including those deferred to the next
     * step.
     */
    const steps: ReadonlyArray<readonly [string, number, () => Promise<{ readonly json: Record<string, unknown> }>]> = [
      // decoded, decoded with the rest, saved
      ["import", 3, () => call("POST", "/admin/config/import?mode=replace", { text })],
      // enrolled, put into the pool, looked through
      ["list", 3, () => call("GET", `/admin/accounts?q=${count - 1}`)],
      ["read", 2, () => call("GET", "/admin/config")],
      ["export", 1, () => call("GET", "/admin/config/export")],
      ["add a key", 1, () => call("POST", "/admin/keys", { body: { key: "another" } })],
      ["replace", 3, () => call("POST", "/admin/config", { text: list })],
      ["look at the queue", 3, () => call("GET", "/admin/queue/status")]
    ]
    let [walked, least] = [0, 0]
    for (const [name, walks, step] of steps) {
      const { most, slices, value } = await sliced(step)
      if (name === "import") assert.deepInclude(value.json, { success: true, config_writable: true })
      for (const { chars, items } of slices) {
        assert.isAtMost(items, sliceItems, name)
        assert.isBelow(chars, sliceChars + 65_536, name)
      }
      // The rest of a walk after its last full slice is not reported.
      walked += itemsOf(slices)
      least += walks * (count - sliceItems)
      // The pool puts the accounts of the step before into its own order, while the request goes on.
      assert.isAtMost(most, 2, name)
    }
    assert.isAtLeast(walked, least)
    assert.strictEqual((await call("GET", "/admin/accounts")).json["total"], count)
  })
})
