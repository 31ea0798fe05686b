/**
 * Schemas of the content blocks in a messages-style request. Blocks and sources of unknown types are accepted; the decoder
 * replaces them by text that names their type.
 */
import * as Schema from "effect/Schema"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { opaque } from "../shared/Family.ts"
import { request, rowOfSchema } from "../shared/requestSchema.ts"
import {
  imageFields,
  knownOr,
  otherKind,
  redactedThinkingFields,
  sourceFields,
  storedPicture,
  textFields,
  thinkingFields,
  toolResultFields,
  toolUseFields
} from "./family.ts"

/** A block of any other type than the known ones, so that an error in a known block is reported for that block. */
const otherThan = (...known: ReadonlyArray<string>) =>
  Schema.Struct({
    type: Schema.String.check(
      Schema.makeFilter((type) => known.includes(type) ? "the block does not have the fields of its type" : undefined)
    )
  })

/** `otherThan` with all fields of the block. */
const otherBlock = (known: ReadonlySet<string>) =>
  Schema.StructWithRest(
    Schema.Struct({
      type: Schema.String.check(
        Schema.makeFilter((type: string) =>
          known.has(type) ? "the block does not have the fields of its type" : undefined
        )
      ).pipe(Schema.brand("OtherType"))
    }),
    [ParsedObject]
  )

const resultTypes: ReadonlySet<string> = new Set(["text", "image", "document", "search_result"])

/** The types of the blocks that messages have and that the decoder reads by their Schema. */
export const knownBlocks: ReadonlySet<string> = new Set([
  ...resultTypes,
  "thinking",
  "redacted_thinking",
  "tool_use",
  "tool_result"
])

const Base64Source = Schema.Struct({
  type: Schema.Literal("base64"),
  media_type: optional(Schema.String),
  data: Schema.NonEmptyString
})
const UrlSource = Schema.Struct({ type: Schema.Literal("url"), url: Schema.NonEmptyString })
const FileSource = Schema.Struct({ type: Schema.Literal("file"), file_id: Schema.NonEmptyString })

export const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
  .annotate(request({ fields: textFields }))

const ImageBlock = Schema.Struct({
  type: Schema.Literal("image"),
  source: Schema.Union([
    Base64Source,
    UrlSource,
    FileSource.annotate(request({ fate: storedPicture })),
    otherThan("base64", "url", "file")
  ])
}).annotate(request({ fields: imageFields }))

/** A part of a document's content. */
export const DocumentPart = Schema.Union([TextBlock, ImageBlock, otherThan("text", "image")])

const DocumentBlock = Schema.Struct({
  type: Schema.Literal("document"),
  source: Schema.Union([
    Base64Source,
    UrlSource,
    FileSource,
    Schema.Struct({ type: Schema.Literal("text"), media_type: optional(Schema.String), data: Schema.String }),
    Schema.Struct({
      type: Schema.Literal("content"),
      content: Schema.Union([
        Schema.String,
        Schema.Array(DocumentPart)
      ]).annotate(request({ fate: opaque }))
    }),
    otherThan("base64", "url", "file", "text", "content")
  ]),
  title: optional(Schema.String),
  context: optional(Schema.String)
}).annotate(request({ fields: sourceFields }))

const SearchResultBlock = Schema.Struct({
  type: Schema.Literal("search_result"),
  source: Schema.String,
  title: Schema.String,
  content: Schema.Array(TextBlock).annotate(request({ fate: opaque }))
}).annotate(request({ fields: sourceFields }))

/** A block of a tool's result. */
export const ResultBlock = Schema.Union([
  TextBlock,
  ImageBlock,
  DocumentBlock,
  SearchResultBlock,
  otherBlock(resultTypes)
]).annotate(request({ kinds: { by: knownOr(resultTypes), rows: otherKind } }))

/** A block of a message. */
export const ContentBlock = Schema.Union([
  TextBlock,
  ImageBlock,
  DocumentBlock,
  SearchResultBlock,
  Schema.Struct({ type: Schema.Literal("thinking"), thinking: Schema.String })
    .annotate(request({ fields: thinkingFields })),
  Schema.Struct({ type: Schema.Literal("redacted_thinking") })
    .annotate(request({ fields: redactedThinkingFields })),
  Schema.Struct({
    type: Schema.Literal("tool_use"),
    id: Schema.String,
    name: Schema.NonEmptyString,
    input: optional(ParsedObject)
  }).annotate(request({ fields: toolUseFields })),
  Schema.Struct({
    type: Schema.Literal("tool_result"),
    tool_use_id: Schema.String,
    content: optional(Schema.Union([Schema.String, Schema.Array(ResultBlock)])),
    is_error: optional(Schema.Boolean)
  }).annotate(request({ fields: toolResultFields })),
  otherBlock(knownBlocks)
]).annotate({
  identifier: "MessagesContentBlock",
  ...request({ kinds: { by: knownOr(knownBlocks), rows: otherKind } })
})

/** A block of a type that is not a known one. */
export type OtherBlock = ReturnType<typeof otherBlock>["Type"]

export const isOtherBlock = (block: { readonly type: string }): block is OtherBlock => !knownBlocks.has(block.type)

/** A block of the system prompt. Of other blocks than texts, the vendor's fields are the same as in a result's blocks. */
export const SystemBlock = Schema.Union([TextBlock, otherThan("text")])
  .annotate(request({ fate: rowOfSchema(ResultBlock) }))
