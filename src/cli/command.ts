/**
 * The command line. What only some commands need is loaded when they are run.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { currentVersion } from "../admin/version/currentVersion.ts"
import { checkConfigCommand } from "./checkConfig.ts"
import { referenceCommand } from "./reference.ts"
import { replayCommand } from "./replay.ts"
import { serveCommand, serveFlags, serveWith } from "./serve.ts"
import { sieveCommand } from "./sieve.ts"

const gateway = Command.make("model-gateway", serveFlags, serveWith).pipe(
  Command.withDescription("An HTTP gateway from four client API styles to one upstream. Without a command it serves."),
  Command.withSubcommands([serveCommand, checkConfigCommand, referenceCommand, replayCommand, sieveCommand])
)

export const runCommand = Command.run(gateway, { version: currentVersion }).pipe(Effect.provide(NodeServices.layer))
