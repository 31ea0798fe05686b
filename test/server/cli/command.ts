/**
 * The gateway's commands without a process of their own, which costs as much as twenty commands. For each command another test starts the
 * process, and a whole run starts one for each call.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, ConfigProvider, Console, Effect, Exit, Layer, Sink, Stdio } from "effect"
import * as Command from "effect/cli/Command"
import { inLine } from "../../../src/domain/printed.ts"
import { gateway } from "../../../src/server/cli/commands.ts"
import { isWhole } from "../../support/effort.ts"
import { type Ended, run } from "./process.ts"

type Options = Pick<NonNullable<Parameters<typeof run>[1]>, "env">

const here = async (args: ReadonlyArray<string>, { env = {} }: Options): Promise<Ended> => {
  const printed = { stdout: "", stderr: "" }
  const write = (to: keyof typeof printed) => (...words: ReadonlyArray<unknown>) => {
    printed[to] += `${words.map(String).join(" ")}\n`
  }
  const stdio = Stdio.layerTest({
    stdout: () =>
      Sink.forEach((piece: string | Uint8Array) =>
        Effect.sync(() => {
          printed.stdout += typeof piece === "string" ? piece : new TextDecoder().decode(piece)
        })
      )
  })
  const exit = await Command.runWith(gateway, { version: "here" })(args).pipe(
    Effect.provide(Layer.mergeAll(NodeServices.layer, stdio, ConfigProvider.layer(ConfigProvider.fromEnvRecord(env)))),
    Effect.provideService(
      Console.Console,
      Object.assign(Object.create(console) as Console.Console, { log: write("stdout"), error: write("stderr") })
    ),
    Effect.runPromiseExit
  )
  if (Exit.isFailure(exit)) {
    const reason = Cause.squash(exit.cause)
    write("stderr")(String(reason instanceof Error ? reason.message : reason).split("\n").map(inLine).join("\n"))
  }
  return { ...printed, code: Exit.isSuccess(exit) ? 0 : 1, signal: null }
}

/** Runs a command to its end. Paths are absolute, and only commands that read no variables of their own take `env`. */
export const runHere = (args: ReadonlyArray<string>, options: Options = {}): Promise<Ended> =>
  isWhole ? run(args, options) : here(args, options)
