/** Upstreams by their vendor in the configuration: what each needs, and where keys that sign may be. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { decodeConfig } from "../../src/config/decodeConfig.ts"

const decode = (upstream: Schema.Json, accounts: ReadonlyArray<Schema.Json> = []) =>
  decodeConfig({ upstreams: { cloud: upstream }, accounts }, { duplicates: "refuse" })

const bedrock = { driver: "messages", vendor: "bedrock", region: "eu-central-1" }
const keys = { upstream: "cloud", credential: { from: "aws", key: "k", secret: "s" } }

describe("an upstream with a vendor", () => {
  it.effect("has its vendor's address and header of keys, or another scheme and host", () =>
    Effect.gen(function*() {
      const upstreamOf = (upstream: Schema.Json) =>
        Effect.map(decode(upstream), ({ snapshot }) => snapshot.config.upstreams.get("cloud")!)
      const azure = yield* upstreamOf({ driver: "openai", vendor: "azure", resource: "res" })
      assert.deepStrictEqual(
        [azure.base_url, azure.credential_header],
        ["https://res.openai.azure.com/openai/v1", "api-key"]
      )
      const foundry = yield* upstreamOf({
        driver: "responses",
        vendor: "azure",
        resource: "res",
        base_url: "https://res.services.ai.azure.com"
      })
      assert.deepStrictEqual(
        [foundry.base_url, foundry.credential_header],
        ["https://res.services.ai.azure.com/openai/v1", "api-key"]
      )
      const endpoint = yield* upstreamOf({ ...bedrock, base_url: "https://vpce.example" })
      assert.strictEqual(endpoint.base_url, "https://vpce.example/anthropic")
    }))

  it.effect.each<readonly [Schema.Json, ReadonlyArray<Schema.Json>, ReadonlyArray<string>]>([
    [{ ...bedrock, vendor: "other" }, [], [
      "upstreams.cloud.vendor must be one of bedrock, bedrock-runtime, vertex, azure"
    ]],
    [{ driver: "messages", vendor: "bedrock" }, [], ["upstreams.cloud.region is required with the vendor bedrock"]],
    [{ ...bedrock, project: "my-project" }, [], ["upstreams.cloud.project must be unset with the vendor bedrock"]],
    [{ driver: "openai", base_url: "http://127.0.0.1:9/v1", region: "eu-central-1" }, [], [
      "upstreams.cloud.region must be unset without a vendor"
    ]],
    [{ ...bedrock, region: "x.evil.example/" }, [], [
      "upstreams.cloud.region must be the name of a region, such as eu-central-1"
    ]],
    [{ ...bedrock, driver: "generate" }, [], [
      "upstreams.cloud.driver must be one of openai, responses, messages with the vendor bedrock"
    ]],
    [{ ...bedrock, base_url: "https://vpce.example/v1" }, [], [
      "upstreams.cloud.base_url must have no path and no query beside a vendor, which has its own"
    ]],
    [{ driver: "openai", base_url: "http://127.0.0.1:9/v1" }, [keys], [
      "accounts[0].credential must be of an upstream with the vendor bedrock or bedrock-runtime"
    ]],
    [bedrock, [keys], []]
  ])("has the fault that follows: %j", ([upstream, accounts, expected]) =>
    Effect.gen(function*() {
      const faults = yield* Effect.match(decode(upstream, accounts), {
        onFailure: (error) => error.faults.map(({ message }) => message),
        onSuccess: () => []
      })
      assert.deepStrictEqual(faults, expected)
    }))
})
