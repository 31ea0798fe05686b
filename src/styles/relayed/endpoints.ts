/**
 * The endpoints that are relayed: what the gateway has to know of each. Everything else of their requests and replies is the server's.
 */

/** A relayed endpoint. */
export interface RelayedEndpoint {
  /** Below the API's version. */
  readonly path: string
  /** Requests may be forms with files. */
  readonly hasFiles: boolean
  /** The request is text, of which its tokens are estimated where the server counts none. */
  readonly isText: boolean
  /** Replies have their text in `choices`, of which its tokens are estimated where the server counts none. */
  readonly hasChoices: boolean
  /** Names of model families stand for the native models, as in chat. */
  readonly takesFamilies: boolean
  /** What the bill counts beside tokens: the pictures of replies, the characters of the request's `input`, or nothing. */
  readonly counts: "pictures" | "characters" | "nothing"
  /** What bounds a reply, for strict limits: its choices, or that it has no output. Nothing bounds the others. */
  readonly bound: "choices" | "none" | undefined
  /** The vendor's model for requests without one; `undefined` if it has none. */
  readonly model: string | undefined
}

const form = {
  hasFiles: true,
  isText: false,
  hasChoices: false,
  takesFamilies: false,
  counts: "nothing",
  bound: undefined,
  model: undefined
} as const

const text = { ...form, hasFiles: false, isText: true } as const

export const relayedEndpoints = {
  completions: { ...text, path: "/completions", hasChoices: true, takesFamilies: true, bound: "choices" },
  rerank: { ...text, path: "/rerank", bound: "none" },
  score: { ...text, path: "/score", bound: "none" },
  moderations: { ...text, path: "/moderations", bound: "none", model: "omni-moderation-latest" },
  images: { ...text, path: "/images/generations", counts: "pictures", model: "dall-e-2" },
  edits: { ...form, path: "/images/edits", counts: "pictures" },
  speech: { ...text, path: "/audio/speech", counts: "characters" },
  transcriptions: { ...form, path: "/audio/transcriptions" },
  translations: { ...form, path: "/audio/translations" }
} as const satisfies { readonly [name: string]: RelayedEndpoint }
