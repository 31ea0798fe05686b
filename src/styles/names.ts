/**
 * Names of styles where they are chosen by name, for contracts and commands that come without the styles.
 */

/** Styles with replies of a model, in which saved samples can be played. */
export const playedStyles = ["chat", "responses", "messages", "generate"] as const

export type PlayedStyle = typeof playedStyles[number]

/** Styles whose requests are recorded. */
export const recordedStyles = ["chat", "responses", "embeddings", "messages", "generate"] as const
