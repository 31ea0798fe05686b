/**
 * `licenses`: the notices of the packages in the gateway.
 */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { print } from "./print.ts"

export const licensesCommand = Command.make("licenses", {}, () =>
  Effect.gen(function*() {
    const { notices } = yield* Effect.promise(() => import("../assets.ts"))
    yield* print(Stream.fromEffect(notices))
  })).pipe(Command.withDescription("Print the licences of the packages that the gateway contains"))
