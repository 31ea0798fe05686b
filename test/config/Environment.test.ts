import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { availableParallelism } from "node:os"
import { Environment } from "../../src/config/Environment.ts"
import { withVariables } from "./support.ts"

const read = (variables: Readonly<Record<string, string>>) => Effect.provide(Environment.make, withVariables(variables))

describe("the environment variables", () => {
  it.effect("have defaults, and a blank one counts as unset", () =>
    Effect.gen(function*() {
      const blank = Object.fromEntries(
        ["PORT", "HOST", "GATEWAY_CONFIG_PATH", "GATEWAY_CONFIG_JSON", "GATEWAY_ADMIN_KEY"].map((name) => [name, " "])
      )
      for (const variables of [{}, blank]) {
        const environment = yield* read(variables)
        assert.strictEqual(environment.port, 5001)
        assert.strictEqual(environment.host, "127.0.0.1")
        assert.strictEqual(environment.configPath, "config.json")
        assert.strictEqual(environment.configJson, undefined)
        assert.strictEqual(environment.configWriteback, false)
        assert.strictEqual(environment.locked, false)
        assert.strictEqual(environment.adminKey, undefined)
        assert.strictEqual(environment.logLevel, "Info")
        assert.strictEqual(environment.releasesUrl, undefined)
        assert.deepStrictEqual(environment.hosting, {
          token: undefined,
          projectId: undefined,
          teamId: undefined,
          apiUrl: undefined
        })
      }
    }))

  it.effect("are all read", () =>
    Effect.gen(function*() {
      const environment = yield* read({
        PORT: "0",
        HOST: "0.0.0.0",
        GATEWAY_CONFIG_PATH: "/data/gateway.json",
        GATEWAY_CONFIG_JSON: "{}",
        GATEWAY_CONFIG_WRITEBACK: "TRUE",
        GATEWAY_LOCKED: "1",
        GATEWAY_ADMIN_KEY: "admin\n",
        GATEWAY_WORKERS: "3",
        GATEWAY_LOG_LEVEL: "debug",
        GATEWAY_RELEASES_URL: "https://releases.test/latest",
        GATEWAY_REFERENCES: "HOSTED_KEY, UPSTREAM_*",
        HOST_TOKEN: "host-token",
        HOST_PROJECT_ID: "project",
        HOST_TEAM_ID: "team",
        HOST_API_URL: "https://host.test/"
      })
      assert.strictEqual(environment.port, 0)
      assert.strictEqual(environment.host, "0.0.0.0")
      assert.strictEqual(environment.configPath, "/data/gateway.json")
      assert.strictEqual(Redacted.value(environment.configJson!), "{}")
      assert.strictEqual(environment.configWriteback, true)
      assert.strictEqual(environment.locked, true)
      assert.strictEqual(Redacted.value(environment.adminKey!), "admin")
      assert.deepStrictEqual(environment.references, ["HOSTED_KEY", "UPSTREAM_*"])
      assert.strictEqual(environment.workers, 3)
      assert.strictEqual((yield* read({ GATEWAY_WORKERS: "auto" })).workers, Math.min(256, availableParallelism()))
      assert.strictEqual((yield* read({})).workers, 1)
      assert.strictEqual(environment.logLevel, "Debug")
      assert.strictEqual(environment.releasesUrl, "https://releases.test/latest")
      assert.strictEqual(Redacted.value(environment.hosting.token!), "host-token")
      assert.strictEqual(environment.hosting.projectId, "project")
      assert.strictEqual(environment.hosting.teamId, "team")
      assert.strictEqual(environment.hosting.apiUrl, "https://host.test")
      assert.notInclude(JSON.stringify(environment), "host-token")
    }))

  it.effect("are each named on a separate line if invalid", () =>
    Effect.gen(function*() {
      const lines = (variables: Readonly<Record<string, string>>) =>
        Effect.map(Effect.flip(read(variables)), (error) => error.message.split("\n"))
      for (const PORT of ["65536", "-1", "80.5", "http", "1e3"]) {
        assert.deepStrictEqual(yield* lines({ PORT }), ["PORT must be a port number between 0 and 65535"])
      }
      assert.deepStrictEqual(
        yield* lines({
          PORT: "x",
          GATEWAY_CONFIG_WRITEBACK: "maybe",
          GATEWAY_WORKERS: "257",
          GATEWAY_LOG_LEVEL: "loud",
          HOST_API_URL: "host.test",
          GATEWAY_RELEASES_URL: "file:///etc/passwd",
          GATEWAY_REFERENCES: "A-KEY, *B"
        }),
        [
          "PORT must be a port number between 0 and 65535",
          "GATEWAY_CONFIG_WRITEBACK must be true or false",
          "GATEWAY_WORKERS must be a number between 1 and 256, or auto",
          "GATEWAY_LOG_LEVEL must be one of all, trace, debug, info, warn, error, fatal, none",
          "HOST_API_URL must be an http or https address",
          "GATEWAY_RELEASES_URL must be an http or https address",
          "GATEWAY_REFERENCES must be names of variables, or beginnings of names before *, with commas between"
        ]
      )
    }))
})
