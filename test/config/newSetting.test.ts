/** A new setting is one entry: a described field in a group of the configuration. Everything else is derived from it. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { OpenApi } from "effect/http-api"
import type * as Support from "../support/gateway.ts"
import { replacing } from "../support/replaced.ts"

const modules = replacing({ "src/config/schema.ts": "test/config/toy/schema.ts" })

let gateway: Support.RunningGateway
let adminKey: string

beforeAll(async () => {
  const support = await modules.load<typeof Support>("test/support/gateway.ts")
  adminKey = support.adminKey
  gateway = await support.startGateway({ compat: { toy_count: 4 } })
})
afterAll(async () => {
  await gateway.stop()
  modules.end()
})

const call = async (method: string, path: string, body?: unknown) => {
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  return { status: response.status, json: await response.json() as Record<string, unknown> }
}

const fieldOf = async () => {
  const { json } = await call("GET", "/admin/settings/fields")
  return (json["fields"] as ReadonlyArray<Readonly<Record<string, unknown>>>).find(({ path }) =>
    path === "compat.toy_count"
  )
}

const shown = async () => (await call("GET", "/admin/settings")).json["compat"]

describe("a setting that is added to a group of the configuration", () => {
  it("is in the list from which forms are made", async () => {
    assert.deepStrictEqual(await fieldOf(), {
      path: "compat.toy_count",
      type: "integer",
      minimum: 1,
      maximum: 9,
      choices: null,
      default: 3,
      configured: 4,
      effective: 4,
      writable: true,
      description: "How many toys there are."
    })
  })

  it("is shown, written, unset and checked against its range", async () => {
    assert.deepInclude(await shown(), { toy_count: 4 })
    assert.strictEqual((await call("PUT", "/admin/settings", { compat: { toy_count: 7 } })).status, 200)
    assert.deepInclude(await shown(), { toy_count: 7 })
    const refused = await call("PUT", "/admin/settings", { compat: { toy_count: 10 } })
    assert.deepEqual([refused.status, refused.json["detail"]], [400, "compat.toy_count must be between 1 and 9"])
    const misspelt = await call("PUT", "/admin/settings", { compat: { toy_cuont: 2 } })
    assert.match(String(misspelt.json["detail"]), /did you mean compat\.toy_count/)
    assert.strictEqual((await call("PUT", "/admin/settings", { compat: { toy_count: null } })).status, 200)
    assert.deepInclude(await shown(), { toy_count: 3 })
  })

  it("is in the API documents", async () => {
    const { json } = await call("GET", "/openapi.json")
    const { components } = json as unknown as OpenApi.OpenAPISpec
    for (const name of ["Settings", "SettingsRequest"]) {
      const text = JSON.stringify(components.schemas[name])
      assert.include(text, "\"toy_count\"", name)
      assert.include(text, "How many toys there are.", name)
    }
  })
})
