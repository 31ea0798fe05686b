/**
 * The program of all commands. The schema JIT must be enabled before the first schema is created.
 */
import "effect/schema/SchemaJITCompiler/enable"
import * as Effect from "effect/Effect"
import { runMain, runService } from "./run.ts"

/** Without arguments the gateway serves, and the command line is not loaded. */
const program = process.argv.length === 2
  ? runService()
  : Effect.promise(() => import("./commands.ts")).pipe(Effect.flatMap(({ runCommand }) => runCommand))

runMain(program)
