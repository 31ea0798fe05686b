#!/usr/bin/env node
/**
 * `model-gateway-reference`: runs a reference upstream on a socket (`node src/testing/main.ts --port 5100` in the repository)
 * until it is interrupted, and prints one line once it listens.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import manifest from "../../package.json" with { type: "json" }
import { runMain, stopOnSignal } from "../server/cli/run.ts"
import { make } from "./Reference.ts"

const optionalInt = (name: string, about: string) =>
  Flag.Int(name).pipe(Flag.withDescription(about), Flag.optional, Flag.map(Option.getOrUndefined))

const flags = {
  port: Flag.Int("port").pipe(Flag.withDescription("Port; 0 picks a free port"), Flag.withDefault(5100)),
  host: Flag.String("host").pipe(Flag.withDescription("Address to listen on"), Flag.withDefault("127.0.0.1")),
  pace: optionalInt("pace", "Milliseconds before every event"),
  burst: optionalInt("burst", "Events in one network write"),
  maxRunning: optionalInt("max-running", "Completions of an account that may run concurrently"),
  tokenLifetime: optionalInt("token-lifetime", "Milliseconds after which a token expires"),
  remember: optionalInt("remember", "Number of latest requests in the report"),
  keepAlive: optionalInt("keep-alive", "Milliseconds that an idle connection stays open")
}

Command.make("model-gateway-reference", flags, ({ host, port, ...options }) =>
  Effect.gen(function*() {
    const reference = yield* make(options)
    const url = yield* reference.listen({ port, host })
    yield* Console.log(`The reference upstream listens on ${url}`)
    return yield* Effect.never
  }).pipe(Effect.scoped, stopOnSignal)).pipe(
    Command.withDescription("Run a reference upstream that speaks the session protocol"),
    Command.run({ version: manifest.version }),
    Effect.provide(NodeServices.layer),
    runMain
  )
