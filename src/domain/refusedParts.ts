/** What a server's refusal says of parts of the request, in neutral terms. Its paths are paths of the server's contract. */
import * as Schema from "effect/Schema"

const path = Schema.String

export const RefusedPart = Schema.Union([
  /** The server does not read the field, or the model does not have it. */
  Schema.TaggedStruct("UnsupportedField", { path }),
  /** The field has a value that the model does not take. `allowed` is empty if the server names none. */
  Schema.TaggedStruct("UnsupportedValue", { path, allowed: Schema.Array(Schema.String) }),
  /** The field has this value, which the model does not take. It may take others. */
  Schema.TaggedStruct("RefusedValue", { path, value: Schema.String }),
  /** The field has a number that is outside of those that the model takes. */
  Schema.TaggedStruct("OutOfRange", { path, least: Schema.Number, most: Schema.Number }),
  /** The limit of output is above the most that the model writes. */
  Schema.TaggedStruct("TooLarge", { most: Schema.Number }),
  /** The prompt fits, and the limit of output is above what it leaves of the window. */
  Schema.TaggedStruct("OverWindow", { window: Schema.Number, prompt: Schema.Number }),
  /** The model takes one of these fields. */
  Schema.TaggedStruct("Conflict", { paths: Schema.Array(path) }),
  /** The model takes no forced call while it thinks. */
  Schema.TaggedStruct("ForcedCall", {}),
  /** The model takes tools or a schema of its reply, of which a request has one. */
  Schema.TaggedStruct("ToolsOrSchema", {}),
  /** The model takes no schema of its reply. It may take JSON without one. */
  Schema.TaggedStruct("NoSchema", {}),
  /** The model's prompt has turns of the user and of the assistant in turn, or no turn of the system. */
  Schema.TaggedStruct("AlternateTurns", {}),
  Schema.TaggedStruct("NoSystem", {}),
  /** All tools of a request have the same `strict`. */
  Schema.TaggedStruct("MixedStrict", {}),
  /** A text has more characters than the server takes. The path has no indices: the limit holds for all elements of a list. */
  Schema.TaggedStruct("TooLong", { path, most: Schema.Number })
])
export type RefusedPart = typeof RefusedPart.Type

/** What is done about a part, in a sentence for operators. */
export const aboutPart = (part: RefusedPart): string => {
  switch (part._tag) {
    case "UnsupportedField":
      return `${part.path} is not sent`
    case "UnsupportedValue":
      return part.allowed.length === 0
        ? `${part.path} is sent without the value that was refused`
        : `${part.path} is one of ${part.allowed.join(", ")}`
    case "RefusedValue":
      return `${part.path} is not sent as ${part.value}`
    case "OutOfRange":
      return `${part.path} is ${part.least} to ${part.most}`
    case "TooLarge":
      return `the limit of output is ${part.most} at most`
    case "OverWindow":
      return `the limit of output is what the prompt leaves of ${part.window} tokens`
    case "Conflict":
      return `of ${part.paths.join(" and ")}, the first is sent`
    case "ForcedCall":
      return "a call is not forced while the model thinks"
    case "ToolsOrSchema":
      return "beside tools, the schema of the reply is a tool that the model has to call"
    case "NoSchema":
      return "the schema of the reply is a tool that the model has to call"
    case "AlternateTurns":
      return "turns of one role in a row are one"
    case "NoSystem":
      return "the system prompt is the beginning of the user's first turn"
    case "MixedStrict":
      return "strict is the same for all tools"
    case "TooLong":
      return `${part.path} has ${part.most} characters at most`
  }
}

/** Identifies a part among those of its model. */
export const keyOfPart = (part: RefusedPart): string => {
  switch (part._tag) {
    case "UnsupportedField":
    case "UnsupportedValue":
      return part.path
    case "RefusedValue":
      return `${part.path} ${part.value}`
    case "Conflict":
      return part.paths.join()
    case "OutOfRange":
    case "TooLong":
      return `${part._tag} ${part.path}`
    default:
      return part._tag
  }
}
