/**
 * The endpoints that are relayed: what the gateway has to know of each. Everything else of their requests and replies is the server's.
 */

/** A relayed endpoint. */
export interface RelayedEndpoint {
  /** Below the API's version. */
  readonly path: string
  /** Requests may be forms with files. */
  readonly hasFiles?: true
  /** The request is text, of which its tokens are estimated where the server counts none. */
  readonly isText?: true
  /** Replies have their text in `choices`, of which its tokens are estimated where the server counts none. */
  readonly hasChoices?: true
  /** Names of model families stand for the native models, as in chat. */
  readonly takesFamilies?: true
  /** What the bill counts beside tokens: the pictures of replies, or the characters of the request's `input`. */
  readonly counts?: "pictures" | "characters"
  /** What bounds a reply, for strict limits: its choices, or that it has no output. Nothing bounds the others. */
  readonly bound?: "choices" | "none"
  /** The vendor's model for requests without one. */
  readonly model?: string
}

export const relayedEndpoints = {
  completions: { path: "/completions", isText: true, hasChoices: true, takesFamilies: true, bound: "choices" },
  rerank: { path: "/rerank", isText: true, bound: "none" },
  score: { path: "/score", isText: true, bound: "none" },
  moderations: { path: "/moderations", isText: true, bound: "none", model: "omni-moderation-latest" },
  images: { path: "/images/generations", isText: true, counts: "pictures", model: "dall-e-2" },
  edits: { path: "/images/edits", hasFiles: true, counts: "pictures" },
  speech: { path: "/audio/speech", isText: true, counts: "characters" },
  transcriptions: { path: "/audio/transcriptions", hasFiles: true },
  translations: { path: "/audio/translations", hasFiles: true }
} as const satisfies { readonly [name: string]: RelayedEndpoint }
