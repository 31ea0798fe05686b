/** The scripted OpenAI-compatible server of `model-gateway/testing`, as tests of the repository use it: without Effect. */
export * from "../../src/testing/openAiSocket.ts"
