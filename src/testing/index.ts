/**
 * Sign deliveries of webhooks in tests of your handlers.
 *
 * @module redlock-edge/testing
 */
export { keyPairFor, type TestKeyPair } from "./key-pair.ts";
export { type DeliveryContent, type SignedDelivery, signedDelivery } from "./signed-delivery.ts";
