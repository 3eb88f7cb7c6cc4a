/**
 * SHA-1 of a text, as 40 hex digits: the id of a script for EVALSHA. Synchronous, because a command must be executed
 * atomically and Web Crypto has only promises. Do not use it for security.
 *
 * @example
 * sha1("a"); // "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"
 */
export declare function sha1(text: string): string;
