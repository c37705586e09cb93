// Package messagejson writes Service Bus messages as JSON lines and reads them back, losing nothing.
//
// A line is one JSON object. People write the short forms, and the package writes whichever form keeps the type:
//
//	{"message_id":"1042","body":"{\"amount\":40}"}             text, sent as one data section
//	{"message_id":"1042","body":{"amount":40}}                 the same, with the bytes as they stand in the line
//	{"message_id":"1043","body_b64":"77u/e30="}                one data section of any bytes
//	{"message_id":"1044","data_sections":["ab","cd"]}          several; data_sections_b64 for any bytes
//	{"message_id":"1045","amqp_value":"text"}                  an amqp-value body; amqp_sequence for lists of lists
//	{"message_id_amqp":{"ulong":42}}                           a typed id: ulong, uuid or binary_hex
//
// Application properties, annotations and values are plain JSON where JSON keeps their type (string, true, null, whole
// numbers as long, other numbers as double), and otherwise an object with the AMQP type as its one name: {"int":1},
// {"ubyte":1}, {"float":1.5}, {"uuid":"..."}, {"symbol":"..."}, {"timestamp":"2006-01-02T15:04:05.000Z"},
// {"binary_b64":"..."}, {"string_b64":"..."} for a string that is not UTF-8, {"map":[[key,value],...]}. A list is an array;
// an AMQP array of one type comes back as a list of that type. An unknown member of a line is refused, so that a
// misspelling never sends a message that lacks something.
package messagejson
