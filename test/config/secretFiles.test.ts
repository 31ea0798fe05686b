/** Secrets in files: which files a reference may name, and that a changed one counts. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { SecretFolders } from "../../src/config/secretFiles.ts"
import { untilHolds } from "../support/until.ts"

const folder = mkdtempSync(path.join(tmpdir(), "secrets-"))
const secrets = path.join(folder, "secrets")
mkdirSync(path.join(secrets, "deep"), { recursive: true })
afterAll(() => rmSync(folder, { recursive: true }))
const lines: Array<string> = []
const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
const at = (name: string) => path.join(secrets, name)

const config = (token: string): RawConfig => ({
  upstream: {
    driver: "openai",
    base_url: "http://127.0.0.1:9/v1",
    headers: { "x-key": `Key \${file:${at("header")}}` }
  },
  accounts: [{ token }]
})

const inFolder = Effect.provideService(SecretFolders, () => [secrets])

const faultsOf = (token: string) =>
  decodeConfig(config(token), { duplicates: "refuse" }).pipe(
    Effect.flip,
    Effect.map(({ faults }) => faults.map(({ message }) => message)),
    inFolder
  )

describe("a secret in a file", () => {
  it.effect("is read from folders of GATEWAY_SECRET_DIRS alone, and from regular files of at most 64 KiB", () =>
    Effect.gen(function*() {
      writeFileSync(at("header"), "one\r\n")
      writeFileSync(path.join(folder, "outside"), "secret of the machine")
      symlinkSync(path.join(folder, "outside"), at("link"))
      writeFileSync(at("long"), "x".repeat(65_537))
      writeFileSync(at("blank"), "\n")
      const none = "which is in no folder of GATEWAY_SECRET_DIRS"
      const rule = "which must be a regular file with a text of at most 64 KiB"
      for (
        const [file, why] of [
          [path.join(folder, "outside"), none],
          [at("../outside"), none],
          [at("link"), none],
          ["header", none],
          [at("long"), rule],
          [at("blank"), rule],
          [at("deep"), rule],
          [at("missing"), rule]
        ] as const
      ) {
        assert.deepEqual(yield* faultsOf(`\${file:${file}}`), [`accounts[0].token refers to the file ${file}, ${why}`])
      }
      const unset = yield* Effect.flip(decodeConfig(config("t"), { duplicates: "refuse" }))
      assert.include(unset.message, `refers to the file ${at("header")}, ${none}`)
    }))

  it.live("counts when it changes, and a missing file leaves the one before", () =>
    Effect.suspend(() => {
      writeFileSync(at("header"), "one")
      writeFileSync(at("token"), "first\n")
      return Effect.gen(function*() {
        const store = yield* ConfigStore
        const token = () => Redacted.value(store.now().accounts[0]!.token!)
        assert.strictEqual(token(), "first")
        writeFileSync(at("next"), "second\n")
        renameSync(at("next"), at("token"))
        yield* Effect.promise(() => untilHolds(() => token() === "second"))
        rmSync(at("token"))
        yield* Effect.promise(() =>
          untilHolds(() => lines.some((line) => line.includes("and the secret before stays")))
        )
        assert.strictEqual(token(), "second")
        writeFileSync(at("token"), "third")
        yield* Effect.promise(() => untilHolds(() => token() === "third"))
        assert.include(JSON.stringify(yield* store.currentRaw), "${file:")
      }).pipe(Effect.provide(
        Layer.provideMerge(ConfigStore.layerJson(config(`\${file:${at("token")}}`)), Logger.layer([logger]))
      ))
    }).pipe(inFolder, Effect.scoped))
})
