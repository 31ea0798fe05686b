/**
 * The edges of the styles at work.
 */
import * as Layer from "effect/Layer"
import { businessEdge, publicEdge } from "../http/edge.ts"
import { generateErrors, messagesErrors, openaiErrors } from "../http/errorShapes.ts"
import {
  GenerateEdge,
  GeneratePublicEdge,
  MessagesEdge,
  MessagesPublicEdge,
  OpenAiEdge,
  OpenAiPublicEdge
} from "./edges.ts"

/** Header in which the messages style's SDK looks for the request's id. */
export const messagesIdHeader = "request-id"

/** The edges of all styles; needs to know callers. Lists of models are no usage of a style, whichever it is. */
export const StyleEdges = Layer.mergeAll(
  Layer.effect(OpenAiEdge, businessEdge(openaiErrors)),
  Layer.succeed(OpenAiPublicEdge, publicEdge(openaiErrors)),
  Layer.effect(MessagesEdge, businessEdge(messagesErrors, messagesIdHeader)),
  Layer.succeed(MessagesPublicEdge, publicEdge(messagesErrors, messagesIdHeader, "models")),
  Layer.effect(GenerateEdge, businessEdge(generateErrors)),
  Layer.succeed(GeneratePublicEdge, publicEdge(generateErrors, undefined, "models"))
)
