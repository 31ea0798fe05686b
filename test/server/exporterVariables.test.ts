import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Observability } from "../../src/server/observability/Observability.ts"

const start = (variables: Record<string, string>) =>
  Layer.build(Observability).pipe(
    Effect.scoped,
    Effect.provide([FetchHttpClient.layer, ConfigProvider.layer(ConfigProvider.fromEnvRecord(variables))])
  )

describe("the exporter's variables", () => {
  it.effect("stop the start with a line that names the one that is wrong", () =>
    Effect.gen(function*() {
      const faults: ReadonlyArray<readonly [Record<string, string>, RegExp]> = [
        [{ OTEL_EXPORTER_OTLP_ENDPOINT: "nonsense" }, /^OTEL_EXPORTER_OTLP_ENDPOINT: Expected [^\n]+$/],
        [
          { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT: "soon" },
          /^OTEL_EXPORTER_OTLP_TIMEOUT: Expected [^\n]+$/
        ]
      ]
      for (const [variables, line] of faults) {
        const error = yield* Effect.flip(start(variables))
        assert.strictEqual(error._tag, "EnvironmentInvalid")
        assert.match(error.message, line)
        assert.notInclude(error.message, "soon")
      }
    }))
})
