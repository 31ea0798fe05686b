/** Unknown fields: every admin endpoint that accepts a body rejects them, and suggests the intended name. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { HttpApi } from "effect/http-api"
import * as SchemaAST from "effect/SchemaAST"
import { GatewayApi } from "../../src/server/Api.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
beforeEach(async () => {
  gateway = await startGateway({ keys: ["first"], accounts: [{ email: "a@x.org", password: "pw" }] })
})
afterEach(() => gateway.stop())
const call = caller(() => gateway)

const keys = async () => (await call("GET", "/admin/config")).json["keys"]

/** The field names of a body, including those of all members of a union. */
const namesOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  SchemaAST.isUnion(ast)
    ? ast.types.flatMap(namesOf)
    : SchemaAST.isObjects(ast)
    ? ast.propertySignatures.map(({ name }) => String(name))
    : []

interface Taking {
  readonly method: string
  readonly path: string
  readonly names: ReadonlyArray<string>
}

/** Every admin endpoint that accepts a body, with the names of its fields. */
const taking: ReadonlyArray<Taking> = (() => {
  const found: Array<Taking> = []
  HttpApi.reflect(GatewayApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      const schemas = [...endpoint.payload.values()].flatMap((payload) => [...payload.schemas])
      if (endpoint.path.startsWith("/admin") && schemas.length > 0) {
        const names = schemas.flatMap(({ ast }) => namesOf(SchemaAST.toEncoded(ast)))
        found.push({ method: endpoint.method, path: endpoint.path, names })
      }
    }
  })
  return found
})()

describe("an admin request with unknown fields", () => {
  it("is rejected by every endpoint, with the suggested name", async () => {
    assert.isAbove(taking.length, 15)
    for (const { method, names, path } of taking) {
      const [name] = names
      assert.isDefined(name, path)
      const misspelt = `${name}x`
      const answer = await call(method, path.replace(/:\w+/, "a@x.org"), {
        body: { [misspelt]: "x" },
        ...(path === "/admin/session" ? { headers: { "sec-fetch-site": "same-origin" } } : {})
      })
      assert.strictEqual(answer.status, 400, `${method} ${path}: ${answer.text}`)
      assert.match(answer.detail, new RegExp(`${misspelt} is (?:an unknown field|not a setting)`), `${method} ${path}`)
      assert.include(answer.detail, `did you mean ${name}?`, `${method} ${path}`)
    }
  })

  it("creates no key if the key's limits are misspelt", async () => {
    const answer = await call("POST", "/admin/keys", {
      body: { generate: true, limit: [{ window: "day", requests: 1 }] }
    })
    assert.deepStrictEqual([answer.status, answer.json], [400, {
      detail: "limit is an unknown field: did you mean limits?",
      faults: [{ field: "limit", message: "limit is an unknown field: did you mean limits?" }]
    }])
    assert.deepStrictEqual(await keys(), ["first"])
  })

  it("is rejected with the path of every unknown field, including those in lists and objects", async () => {
    const limits = await call("POST", "/admin/keys", {
      body: { generate: true, limits: [{ window: "day", token: 1 }], note: "n", entirely_other: 1 }
    })
    assert.strictEqual(
      limits.detail,
      "limits[0].token is an unknown field: did you mean limits[0].tokens?; " +
        "entirely_other is an unknown field"
    )
    const parts = await call("POST", "/admin/config", {
      body: { key: ["x"], accounts: [{ emial: "a@x.org", token: "t" }] }
    })
    assert.strictEqual(
      parts.detail,
      "key is an unknown field: did you mean keys?; " +
        "accounts[0].emial is an unknown field: did you mean accounts[0].email?"
    )
    const batch = await call("POST", "/admin/accounts/batch", {
      body: { action: "add", accounts: [{ token: "t" }, { email: "b@x.org", pasword: "p" }] }
    })
    assert.include(batch.detail, "did you mean accounts[1].password?")
    const settings = await call("PUT", "/admin/settings", { body: { runtime: { acount_max_inflight: 1 } } })
    assert.include(settings.detail, "did you mean runtime.account_max_inflight?")
    assert.deepStrictEqual(await keys(), ["first"])
    assert.strictEqual((await call("GET", "/admin/accounts")).json["total"], 1)
  })

  it("an import rejects them in its wrapper, and keeps them with a warning in the configuration", async () => {
    const config = { keys: ["second"], of_a_newer_gateway: 1, toolcall: { mode: "x" } }
    for (
      const [body, meant] of [
        [{ cofnig: config, mode: "replace" }, "config"],
        [{ config, mod: "replace" }, "mode"],
        [{ ...config, mdoe: "replace" }, "mode"]
      ] as const
    ) {
      const refused = await call("POST", "/admin/config/import", { body })
      assert.strictEqual(refused.status, 400, refused.text)
      assert.include(refused.detail, `did you mean ${meant}?`)
    }
    assert.deepStrictEqual(await keys(), ["first"])
    for (const body of [{ config, mode: "merge" }, { ...config, mode: "merge" }, config]) {
      const taken = await call("POST", "/admin/config/import", { body })
      assert.strictEqual(taken.status, 200, taken.text)
      assert.include(String(taken.json["warnings"]), "of_a_newer_gateway is an unknown field")
    }
    assert.deepStrictEqual(await keys(), ["first", "second"])
  })

  it("the older names of the contract are still accepted", async () => {
    const taken = await Promise.all([
      call("PUT", "/admin/settings", { body: { auto_delete: { sessions: true } } }),
      call("POST", "/admin/config/import", { body: { msgcompat_model_mapping: { fast: "upstream-chat" } } })
    ])
    assert.deepStrictEqual(taken.map(({ status }) => status), [200, 200])
    const password = await call("POST", "/admin/settings/password", { body: { password: "a long new password" } })
    assert.strictEqual(password.status, 200, password.text)
  })
})
