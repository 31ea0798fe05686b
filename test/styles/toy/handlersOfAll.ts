/** What serves the styles, with the small one. */
import { Layer } from "effect"
import { StyleHandlers as real } from "../../../src/styles/handlers.ts"
import { ToyHandlers } from "./Handlers.ts"

export const StyleHandlers = Layer.merge(real, ToyHandlers)
