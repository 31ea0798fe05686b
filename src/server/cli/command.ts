/**
 * The command line. What only some commands need is loaded when they are run.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { checkConfigCommand } from "./checkConfig.ts"
import { configSchemaCommand } from "./configSchema.ts"
import { healthCommand } from "./healthCommand.ts"
import { licensesCommand } from "./licenses.ts"
import { referenceCommand } from "./reference.ts"
import { replayCommand } from "./replay.ts"
import { serveCommand, serveFlags, serveWith } from "./serve.ts"
import { sieveCommand } from "./sieve.ts"
import { versionLine } from "./versionLine.ts"

export const gateway = Command.make("model-gateway", serveFlags, serveWith).pipe(
  Command.withDescription("An HTTP gateway from four client API styles to one upstream. Without a command it serves."),
  Command.withSubcommands([
    serveCommand,
    healthCommand,
    checkConfigCommand,
    configSchemaCommand,
    referenceCommand,
    replayCommand,
    sieveCommand,
    licensesCommand
  ])
)

export const runCommand = Command.run(gateway, { version: versionLine() }).pipe(Effect.provide(NodeServices.layer))
