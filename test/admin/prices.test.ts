/** Prices in the admin API: how they are shown, changed and refused, and what they count for. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Layer } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { withVariables } from "../config/support.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
let folder: string
let file: string
const call = caller(() => gateway)
afterEach(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

const limited = "sk-limited"
const server = { driver: "openai", base_url: "http://127.0.0.1:9/v1" }
const configured = { "vendor-large": { input: 1 }, "GPU/small": { input: 2, output: "4" } }
const config: RawConfig = {
  keys: [limited],
  key_records: { [keyId(limited, sha256Hex)]: { limits: [{ window: "day", cost: 1 }] } },
  upstream: { driver: "embedded" },
  upstreams: {
    gpu: { ...server, models: { small: "vendor-small", large: "vendor-large" } },
    hosted: { ...server, models: { small: "small" } }
  },
  routes: { fast: ["default/upstream-chat", "gpu/small"] },
  currency: "EUR",
  prices: { list: false, ...configured }
}

const start = async () => {
  folder = mkdtempSync(path.join(tmpdir(), "prices-"))
  file = path.join(folder, "config.json")
  writeFileSync(file, JSON.stringify(config))
  const environment = { GATEWAY_CONFIG_PATH: file, GATEWAY_ADMIN_KEY: adminKey }
  gateway = await startGateway({}, {
    store: ConfigStore.layer.pipe(
      Layer.provide(Environment.layer),
      Layer.provide(withVariables(environment)),
      Layer.provide(NodeServices.layer)
    ),
    environment
  })
}

const ok = async (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await call(method, path, { headers, ...(body === undefined ? {} : { body }) })
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json
}

/** Asks with the key whose cost is limited. */
const ask = (model: string) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${limited}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "!say one two" }] })
  })

const messageOf = async (reply: Response) => {
  const { error } = await reply.json() as { readonly error: { readonly code: string; readonly message: string } }
  return [reply.status, error.code, error.message]
}

type Target = Record<"name" | "target" | "server_model", string> & {
  readonly price: string | null
  readonly missing: ReadonlyArray<string>
}

describe("the prices in the admin API", () => {
  it("are shown beside the models of every upstream and route, with what is missing", async () => {
    await start()
    const { currency, prices, targets } = await ok("GET", "/admin/prices")
    assert.deepStrictEqual([currency, prices], ["EUR", configured])
    const shown = (targets as ReadonlyArray<Target>).map((
      { missing, name, price, server_model, target }
    ) => [name, target, server_model, price, missing.join()])
    const without = "input,output"
    assert.deepStrictEqual(shown.filter(([, target]) => !target?.startsWith("default/") || target.endsWith("-chat")), [
      ["upstream-chat", "default/upstream-chat", "upstream-chat", null, without],
      ["small", "gpu/small", "vendor-small", "GPU/small", ""],
      ["large", "gpu/large", "vendor-large", "vendor-large", "output"],
      ["small", "hosted/small", "small", null, without],
      ["fast", "default/upstream-chat", "upstream-chat", null, without],
      ["fast", "gpu/small", "vendor-small", "GPU/small", ""]
    ])
  })

  it("are replaced as a whole: in the file, in the history, and for the next request", async () => {
    await start()
    assert.deepStrictEqual(await messageOf(await ask("fast")), [
      403,
      "model_not_priced",
      `This API key has a cost limit, and the model "fast" has no price at its target "default/upstream-chat". ` +
      "Ask the gateway's operator to add one."
    ])
    const { revision } = await ok("GET", "/admin/prices")
    const match = { "if-match": `"${String(revision)}"` }
    const prices = { fast: { per_request: "0.25" }, "hosted/small": { input: 1, output: 2 } }
    const saved = await ok("PUT", "/admin/prices", { prices }, match)
    assert.deepInclude(saved, { success: true, prices, config_writable: true })
    assert.deepStrictEqual(
      (saved["targets"] as ReadonlyArray<Target>).filter(({ price }) => price !== null).map((
        { name, price, target }
      ) => [
        name,
        target,
        price
      ]),
      [
        ["small", "hosted/small", "hosted/small"],
        ["fast", "default/upstream-chat", "fast"],
        ["fast", "gpu/small", "fast"]
      ]
    )
    assert.deepStrictEqual((JSON.parse(readFileSync(file, "utf8")) as RawConfig)["prices"], { list: false, ...prices })
    const { changes } = await ok("GET", "/admin/changes") as {
      readonly changes: ReadonlyArray<{ action: string; fields: ReadonlyArray<{ path: string }> }>
    }
    assert.strictEqual(changes[0]?.action, "the prices were changed")
    assert.include((changes[0]?.fields ?? []).map(({ path }) => path), "prices.fast")

    assert.strictEqual((await ask("fast")).status, 200)
    await untilHolds(async () => {
      const { totals } = await ok("GET", "/admin/usage") as { readonly totals: Record<string, unknown> }
      return totals["cost"] === "0.25"
    })
    assert.strictEqual((await call("PUT", "/admin/prices", { body: { prices: {} }, headers: match })).status, 409)
    await ok("PUT", "/admin/prices", { prices: {} })
    assert.deepStrictEqual((JSON.parse(readFileSync(file, "utf8")) as RawConfig)["prices"], { list: false })
    assert.strictEqual((await ask("fast")).status, 403)
  })

  it("name every fault, and stay as they are", async () => {
    await start()
    const faults: ReadonlyArray<readonly [body: unknown, detail: RegExp]> = [
      [{}, /^prices is required/],
      [{ prices: [] }, /^prices must be an object/],
      [{ prices: { a: { input: -1 } } }, /^prices\.a\.input must be/],
      [{ prices: { a: {} } }, /^prices\.a must have at least one price/],
      [{ prices: { a: null } }, /^prices\.a must be an object/],
      [{ prices: { a: { inptu: 1 } } }, /^prices\.a\.inptu is an unknown field.* mean prices\.a\.input/],
      [{ prices: { "a*b": { input: 1 } } }, /^prices\.a\*b may have \* at its end only/],
      [{ price: {} }, /^price is an unknown field.* mean prices/]
    ]
    for (const [body, detail] of faults) {
      const answer = await call("PUT", "/admin/prices", { body })
      assert.strictEqual(answer.status, 400, answer.text)
      assert.match(answer.detail, detail)
    }
    assert.deepStrictEqual((await ok("GET", "/admin/prices"))["prices"], configured)
  })
})
