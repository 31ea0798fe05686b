/**
 * The program of every command. The JIT for schemas must be on before any schema is made.
 */
import "effect/schema/SchemaJITCompiler/enable"
import * as Effect from "effect/Effect"
import { runMain } from "./runMain.ts"

/** Without arguments it serves, and the modules of the command line are not loaded. */
const program = process.argv.length === 2
  ? Effect.promise(() => import("./runService.ts")).pipe(Effect.flatMap(({ runService }) => runService))
  : Effect.promise(() => import("./command.ts")).pipe(Effect.flatMap(({ runCommand }) => runCommand))

runMain(program)
