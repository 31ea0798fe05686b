/** The handlers of the styles with those of the toy contract. */
import * as Layer from "effect/Layer"
import { layerStyles, StyleHandlers as actual } from "../../../../src/styles/handlers.ts"
import { ToyHandlers } from "../style.ts"

export const StyleHandlers = Layer.merge(actual, Layer.provide(ToyHandlers, layerStyles))
