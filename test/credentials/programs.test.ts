/** Programs of credentials, as the system runs them. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { commandTokens } from "../../src/credentials/command.ts"
import { untilTrue } from "../support/until.ts"

let folder: string
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "programs-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

const tokensOf = (script: string, ...args: ReadonlyArray<string>) =>
  commandTokens({ from: "command", run: [process.execPath, "-e", script, ...args], for: 60, timeout: 3 })

const messageOf = (script: string) => Effect.map(Effect.flip(tokensOf(script).issue), ({ message }) => message)

describe("the program of a credential", () => {
  it.live("gets its arguments as they are, without a shell, and prints a token that lives as long as configured", () =>
    Effect.gen(function*() {
      const issued = yield* tokensOf("console.log(process.argv.slice(1).join('+'))", "$(id)", ";ls", "*").issue
      assert.deepStrictEqual(issued, { token: "$(id)+;ls+*", lives: 60_000, renewAfter: undefined })
    }))

  it.live("has the environment of the gateway without its own variables, and no input", () =>
    Effect.gen(function*() {
      process.env["GATEWAY_ADMIN_KEY"] = "canary"
      process.env["OF_THE_PROGRAM"] = "seen"
      const script = "process.stdin.on('end', () => console.log(JSON.stringify([process.env.GATEWAY_ADMIN_KEY ?? 0, " +
        "process.env.OF_THE_PROGRAM]))).resume()"
      const { token } = yield* tokensOf(script).issue
      delete process.env["GATEWAY_ADMIN_KEY"]
      delete process.env["OF_THE_PROGRAM"]
      assert.strictEqual(token, "[0,\"seen\"]")
    }))

  it.live("fails by its step, of which no output is quoted", () =>
    Effect.gen(function*() {
      const canary = "console.log('canary'); console.error('canary');"
      assert.strictEqual(yield* messageOf(`${canary} process.exitCode = 3`), "command: the program ended with 3")
      assert.strictEqual(
        yield* messageOf("process.stdout.write('x'.repeat(70_000))"),
        "command: the program printed more than 65536 bytes"
      )
      assert.strictEqual(
        yield* messageOf("console.log('two'); console.log('lines')"),
        "command: the program printed no token of one line"
      )
      const missing = commandTokens({ from: "command", run: [path.join(folder, "none"), "canary"] })
      assert.strictEqual(
        (yield* Effect.flip(missing.issue)).message,
        "command: the program cannot be started (ENOENT)"
      )
    }))

  it.effect("is killed at its time limit", () =>
    Effect.gen(function*() {
      const [started, over] = [path.join(folder, "started"), path.join(folder, "over")]
      const script = `const { writeFileSync } = require("node:fs"); writeFileSync(${JSON.stringify(started)}, "");` +
        `require("node:net").createServer().listen(0);` +
        `process.on("SIGTERM", () => writeFileSync(${JSON.stringify(over)}, ""))`
      const running = yield* Effect.forkChild(messageOf(script))
      yield* untilTrue(Effect.sync(() => existsSync(started)))
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* Fiber.join(running), "command: the program did not end within 3 seconds")
      assert.isFalse(existsSync(over))
    }))
})
