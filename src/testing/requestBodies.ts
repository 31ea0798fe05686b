/**
 * The request bodies of the session protocol, field by field as the page has them. Nothing is optional that the page does not
 * leave out, so that a driver that forgets a field is told.
 */
import * as Schema from "effect/Schema"

const bodies = {
  login: Schema.Struct({
    email: Schema.optional(Schema.String),
    mobile: Schema.optional(Schema.String),
    password: Schema.String,
    device_id: Schema.String,
    os: Schema.String
  }),
  create: Schema.Struct({ agent: Schema.String }),
  session: Schema.Struct({ chat_session_id: Schema.String }),
  completion: Schema.Struct({
    chat_session_id: Schema.String,
    parent_message_id: Schema.NullOr(Schema.Number),
    prompt: Schema.String,
    ref_file_ids: Schema.Array(Schema.String),
    thinking_enabled: Schema.Boolean,
    search_enabled: Schema.Boolean
  }),
  continue: Schema.Struct({
    chat_session_id: Schema.String,
    message_id: Schema.Number,
    fallback_to_resume: Schema.Boolean
  }),
  stop_stream: Schema.Struct({ chat_session_id: Schema.String, message_id: Schema.Number })
}

/** Reads a body as text; none where it does not have the form of its call. */
export const decodeBody = {
  login: Schema.decodeUnknownOption(Schema.fromJsonString(bodies.login)),
  create: Schema.decodeUnknownOption(Schema.fromJsonString(bodies.create)),
  session: Schema.decodeUnknownOption(Schema.fromJsonString(bodies.session)),
  completion: Schema.decodeUnknownOption(Schema.fromJsonString(bodies.completion)),
  continue: Schema.decodeUnknownOption(Schema.fromJsonString(bodies.continue)),
  stop_stream: Schema.decodeUnknownOption(Schema.fromJsonString(bodies.stop_stream))
}

/** A completion request. */
export type CompletionBody = typeof bodies.completion.Type
