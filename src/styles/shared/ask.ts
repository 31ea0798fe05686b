/**
 * What styles share in wording an ask.
 */
import type { Ask } from "../Style.ts"

const anyObject = { type: "object" }

/** The functions that the model may call; one without parameters takes any object. */
export const functions = ({ tools }: Ask) =>
  tools.map(({ description, name, parameters = anyObject }) => ({ name, description, parameters }))
