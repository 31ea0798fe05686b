/**
 * `replay`: a saved sample through one of the styles, as a caller would get it.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { Environment } from "../../config/Environment.ts"
import { playedStyles } from "../../styles/Style.ts"
import { print } from "./print.ts"
import { readConfig } from "./readConfig.ts"
import { toolsFlag } from "./sieve.ts"

export const replayCommand = Command.make(
  "replay",
  {
    sample: Argument.String("sample").pipe(
      Argument.withDescription("Id of a sample in the configured folder, or the path of a sample's folder")
    ),
    style: Flag.Literals("style", playedStyles).pipe(
      Flag.withAlias("s"),
      Flag.withDescription("The style to answer in"),
      Flag.withDefault("chat")
    ),
    model: Flag.String("model").pipe(
      Flag.withAlias("m"),
      Flag.withDescription("The model to ask for: it says whether reasoning is shown"),
      Flag.withDefault("upstream-chat")
    ),
    whole: Flag.Boolean("whole").pipe(
      Flag.withDescription("One whole reply instead of a stream"),
      Flag.withDefault(false)
    ),
    tools: toolsFlag.pipe(Flag.optional)
  },
  Effect.fnUntraced(function*({ model, sample, style, tools, whole }) {
    const path = yield* Path.Path
    const isPath = path.basename(sample) !== sample
    const dir = isPath ? path.dirname(sample) : (yield* readConfig(Option.none())).config.samples.dir
    const { replaySample } = yield* Effect.promise(() => import("./replaySample.ts"))
    yield* print(
      yield* replaySample({
        dir,
        id: path.basename(sample),
        style,
        model,
        stream: !whole,
        tools: Option.getOrElse(tools, () => [])
      })
    )
  }, Effect.scoped)
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Replay a saved sample through a style; prints what a caller would get")
)
