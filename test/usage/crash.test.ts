import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { everything, keyA, NodeServices, sqliteStore, start, usageFile } from "./support.ts"

const counter = fileURLToPath(new URL("crash/counter.ts", import.meta.url))

/** Runs the counting process, kills it by SIGKILL after some numbers, and returns the last number that it printed. */
const killWhileCounting = (file: string, times: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [counter, file], { stdio: ["ignore", "pipe", "inherit"] })
    let printed = ""
    child.stdout.on("data", (chunk: Buffer) => {
      printed += chunk.toString()
      if (printed.split("\n").length > times) child.kill("SIGKILL")
    })
    child.on("error", reject)
    child.on("close", (code, signal) => {
      if (signal === "SIGKILL") resolve(Number(printed.split("\n").at(-2)))
      else reject(new Error(`The process ended by itself (${code})`))
    })
  })

describe("a process that is killed while it counts usage", () => {
  it.effect("leaves a consistent file that lacks at most the last second", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      for (const times of [1, 7, 30]) {
        const counted = yield* Effect.promise(() => killWhileCounting(file, times))
        assert.isAtLeast(counted, 100 * times)
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* sqliteStore({ file })
          const { totals } = yield* store.query({ ...everything, by: [] })
          assert.isAtLeast(totals.values[0]!, counted)
          assert.strictEqual((yield* store.counters(keyA, start)).windows.month.requests, totals.values[0])
          assert.strictEqual((yield* store.status).detail, null)
        }))
      }
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
})
