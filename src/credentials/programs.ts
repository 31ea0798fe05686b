/**
 * Runs the program of a credential.
 *
 * The one thing to know: a program has no shell, no input and none of the gateway's own variables, and nothing of what it prints is shown.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { isOwnVariable } from "../config/referenceNames.ts"

/** The end of a program: what it printed if it ended with 0, else why it has no output. */
export type Ended = { readonly output: string } | { readonly failed: string }

/** Runs a program with its arguments; `most` bounds the bytes of its output. An interrupted program is killed. */
export type RunProgram = (run: ReadonlyArray<string>, most: number) => Effect.Effect<Ended>

const ownEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOwnVariable(name)))

const runProgram: RunProgram = ([file = "", ...args], most) =>
  Effect.callback<Ended>((resume) => {
    const child = spawn(file, args, {
      shell: false,
      stdio: ["ignore", "pipe", "ignore"],
      env: ownEnvironment(),
      windowsHide: true
    })
    const pieces: Array<Buffer> = []
    let length = 0
    const end = (ended: Ended) => {
      child.kill("SIGKILL")
      child.stdout.destroy()
      resume(Effect.succeed(ended))
    }
    child.stdout.on("data", (piece: Buffer) => {
      length += piece.length
      if (length > most) end({ failed: `the program printed more than ${most} bytes` })
      else pieces.push(piece)
    })
    child.once("error", (error: NodeJS.ErrnoException) =>
      end({ failed: `the program cannot be started (${error.code ?? "unknown"})` }))
    child.once("close", (code, signal) =>
      end(
        code === 0
          ? { output: Buffer.concat(pieces).toString("utf8") }
          : { failed: `the program ended with ${code ?? signal ?? "no status"}` }
      ))
    return Effect.sync(() =>
      child.kill("SIGKILL")
    )
  })

/** Runs programs of this computer. */
export const CurrentPrograms = Context.Reference<RunProgram>("model-gateway/credentials/Programs", {
  defaultValue: () => runProgram
})
