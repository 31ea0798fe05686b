/**
 * `model-gateway/transducer`: pure stream machines, and the operator that runs one over a `Stream`.
 */
export { stripReferenceMarkers } from "./stream/referenceMarkers.ts"
export { encodeSse, makeSseDecoder, sseComment, sseDone } from "./stream/sse.ts"
export type { SseDecoder, SseEvent } from "./stream/sse.ts"
export { compileStopSequences, stopMachine } from "./stream/stopSequences.ts"
export type { StopMachine, StopSequences } from "./stream/stopSequences.ts"
export { transduce } from "./stream/transduce.ts"
export { compose, run } from "./stream/transducer.ts"
export type { Machine, Transducer } from "./stream/transducer.ts"
