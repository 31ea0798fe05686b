/**
 * `sieve`: a text through the sieve, as JSON lines.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { JsonSchema, ToolDeclaration } from "../../domain/Conversation.ts"
import { sieveStream } from "../../sieve.ts"
import { printLines } from "./print.ts"

const Tool = Schema.Struct({
  name: Schema.NonEmptyString,
  description: Schema.optionalKey(Schema.NullOr(Schema.String)),
  parameters: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Json))),
  input_schema: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Json)))
})

const Tools = Schema.Array(Schema.Union([Schema.Struct({ function: Tool }), Tool]))

/** Tools as any style declares them: a list, or a request that has one. */
export const ToolsFile = Schema.Union([Tools, Schema.Struct({ tools: Tools })])

/** What a file of tools declares. */
export const declaredTools = (file: typeof ToolsFile.Type): ReadonlyArray<ToolDeclaration> =>
  ("tools" in file ? file.tools : file).map((entry) => {
    const { description, input_schema, name, parameters } = "function" in entry ? entry.function : entry
    const schema: JsonSchema | undefined = parameters ?? input_schema ?? undefined
    return { name, description: description ?? undefined, parameters: schema, strict: undefined }
  })

export const toolsFlag = Flag.FileSchema("tools", ToolsFile).pipe(
  Flag.withAlias("t"),
  Flag.withDescription("JSON file of the declared tools, as any of the styles declares them"),
  Flag.map(declaredTools)
)

/** The text cannot be read. */
class TextUnreadable extends Schema.TaggedError<TextUnreadable>()("TextUnreadable", { message: Schema.String }) {}

const unreadable = (file: string) => ({ reason }: PlatformError): TextUnreadable => {
  if (reason._tag === "NotFound") return new TextUnreadable({ message: `${file}: there is no such file` })
  const code = Predicate.hasProperty(reason.cause, "code") ? String(reason.cause.code) : reason._tag
  return new TextUnreadable({
    message: code === "EISDIR" ? `${file} is a folder, not a file` : `${file} cannot be read (${code})`
  })
}

export const sieveCommand = Command.make(
  "sieve",
  {
    file: Argument.String("file").pipe(Argument.withDescription("Text that a model wrote; - for standard input")),
    tools: toolsFlag.pipe(Flag.optional)
  },
  Effect.fnUntraced(function*({ file, tools }) {
    const fs = yield* FileSystem.FileSystem
    const stdio = yield* Stdio.Stdio
    const bytes: Stream.Stream<Uint8Array, PlatformError | TextUnreadable> = file === "-"
      ? stdio.stdin
      : Stream.mapError(fs.stream(file), unreadable(file))
    yield* bytes.pipe(
      Stream.decodeText(),
      sieveStream({ tools: Option.getOrElse(tools, () => []) }),
      Stream.map((event) => JSON.stringify(event)),
      printLines
    )
  })
).pipe(Command.withDescription("Find the tool calls in a text; prints one event a line, as JSON"))
